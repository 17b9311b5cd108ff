# SPDX-License-Identifier: Apache-2.0
"""The benchmark functions, written once over a namespace `xp` that each tool provides:

    sqrt exp log sin cos tanh abs arctan2 erf maximum_of_rows  elementwise, reductions
    sum(x)  sum_of_rows(x)  concatenate(list)  transpose(x)  constant(x)
    gradient(f, arguments)

Each function takes one example; its arguments have the names and order of Loipe's task.
They are the published functions (AlphaGrad, arXiv 2406.05027), with what is odd in them:
gamma = 0.5 and |u| twice in the Roe solvers, row statistics laid along the columns in the
layer norm of the encoder.
"""

GAMMA = 0.5


def roe_flux_1d(xp, ul0, ul1, ul2, ur0, ur1, ur2):
    def pressure(density, momentum, energy):
        return (GAMMA - 1) * (energy - 0.5 * momentum**2 / density)

    def flux(density, momentum, energy, p):
        velocity = momentum / density
        return momentum, p + momentum * velocity, velocity * (p + energy)

    def average(left, right):
        return (xp.sqrt(ul0) * left + xp.sqrt(ur0) * right) / weight

    weight = xp.sqrt(ul0) + xp.sqrt(ur0)
    density = xp.sqrt(ul0 * ur0)
    p_left, p_right = pressure(ul0, ul1, ul2), pressure(ur0, ur1, ur2)
    u = average(ul1 / ul0, ur1 / ur0)
    h = average((ul2 + p_left) / ul0, (ur2 + p_right) / ur0)
    a2 = (GAMMA - 1) * (h - 0.5 * u**2)
    a = xp.sqrt(a2)
    p_jump, u_jump = p_right - p_left, ur1 / ur0 - ul1 / ul0
    w0 = (ur0 - ul0 - p_jump / a2) * xp.abs(u)
    w1 = (u_jump + p_jump / (a * density)) * xp.abs(u + a)
    w2 = (u_jump - p_jump / (a * density)) * xp.abs(u)
    c = 0.5 * density / a
    left, right = flux(ul0, ul1, ul2, p_left), flux(ur0, ur1, ur2, p_right)
    jumps = (
        w0 + c * w1 - c * w2,
        w0 * u + c * w1 * (u + a) - c * w2 * (u - a),
        w0 * 0.5 * u**2 + c * w1 * (h + u * a) - c * w2 * (h - u * a),
    )
    return tuple(0.5 * (l + r - j) for l, r, j in zip(left, right, jumps))


def roe_flux_3d(xp, ul0, ul, ul4, ur0, ur, ur4):
    """Densities and energies have shape (1,), momenta (3,)."""

    def pressure(density, momentum, energy):
        return (GAMMA - 1) * (energy - 0.5 * xp.sum(momentum**2) / density)

    def flux(momentum, velocity, energy, p):
        zero = 0 * p
        return momentum[0:1], xp.concatenate([p, zero, zero]) + momentum * velocity, velocity[0:1] * (p + energy)

    def average(left, right):
        return (xp.sqrt(ul0) * left + xp.sqrt(ur0) * right) / (xp.sqrt(ul0) + xp.sqrt(ur0))

    d0, dm, d4 = ur0 - ul0, ur - ul, ur4 - ul4
    velocity = average(ul / ul0, ur / ur0)
    u, v, w = velocity[0:1], velocity[1:2], velocity[2:3]
    p_left, p_right = pressure(ul0, ul, ul4), pressure(ur0, ur, ur4)
    h = average((ul4 + p_left) / ul0, (ur4 + p_right) / ur0)
    q2 = xp.sum(velocity**2)
    a2 = (GAMMA - 1) * (h - 0.5 * q2)
    a = xp.sqrt(a2)
    c3 = (GAMMA - 1) / a2 * ((h - q2) * d0 + xp.sum(velocity * dm) - d4) * u
    c2 = (dm[2:3] / w - dm[0:1]) * u
    c1 = (dm[1:2] / v - d0) * u
    k1, k2 = d0 - c3, (dm[0:1] - u * d0) / a
    c0, c4 = 0.5 * (k1 - k2) * (u - a), 0.5 * (k1 + k2) * (u + a)
    left, right = flux(ul, ul / ul0, ul4, p_left), flux(ur, ur / ur0, ur4, p_right)
    jump = xp.concatenate([
        c0 * (u - a) + c3 * u + c4 * (u + a),
        c0 * v + c1 * v + c3 * v + c4 * v,
        c0 * w + c2 * w + c3 * w + c4 * w,
    ])
    energy_jump = c0 * (h - u * a) + c1 * v**2 + c2 * w**2 + c3 * 0.5 * q2 + c4 * (h + u * a)
    jumps = (c0 + c3 + c4 * (u + a), jump, energy_jump)
    return tuple(0.5 * (l + r - j) for l, r, j in zip(left, right, jumps))


def robot_arm(xp, t1, t2, t3, t4, t5, t6):
    A1, A2, A3, D1, D4, D6 = 175, 890, 50, 575, 1035, 185
    c1, c2, c4, c5, c6 = (xp.cos(t) for t in (t1, t2, t4, t5, t6))
    s1, s2, s4, s5, s6 = (xp.sin(t) for t in (t1, t2, t4, t5, t6))
    c23 = xp.cos(t2) * xp.cos(t3) - xp.sin(t2) * xp.sin(t3)
    s23 = xp.cos(t2) * xp.sin(t3) + xp.sin(t2) * xp.cos(t3)
    ax = s5 * (c1 * c23 * c4 + s1 * s4) + c1 * s23 * c5
    ay = s5 * (s1 * c23 * c4 - c1 * s4) + s1 * s23 * c5
    az = s23 * c4 * s5 - c23 * c5
    tilt = c23 * s5 + s23 * c4 * c5
    nz = c6 * tilt - s23 * s4 * s6
    oz = -s6 * tilt - s23 * s4 * c6
    reach = A1 + A2 * c2 + A3 * c23 + D4 * s23
    # The sign before c1 s4 is another one than in ay, as published.
    px = D6 * ax + c1 * reach
    py = D6 * (s5 * (s1 * c23 * c4 + c1 * s4) + s1 * s23 * c5) + s1 * reach
    pz = A2 * s2 + D1 + A3 * s23 - D4 * c23 + D6 * az
    return (px, py, pz, xp.arctan2(ay, ax), xp.arctan2(xp.sqrt(1 - az**2), az), xp.arctan2(oz, -nz))


def human_heart(xp, x1, x2, x3, x4, x5, x6, x7, x8):
    p, q = x5**2 - x7**2, x6**2 - x8**2
    a, b = x5 * (x5**2 - 3 * x7**2), x7 * (x7**2 - 3 * x5**2)
    c, d = x6 * (x6**2 - 3 * x8**2), x8 * (x8**2 - 3 * x6**2)
    return (
        x1 + x2 - 1,
        x3 + x4 - 1,
        x5 * x1 + x6 * x2 - x7 * x3 - x8 * x4 - 1,
        x7 * x1 + x8 * x2 + x5 * x3 + x6 * x4 - 1,
        x1 * p - 2 * x3 * x5 * x7 + x2 * q - 2 * x4 * x6 * x8 - 1,
        x3 * p - 2 * x1 * x5 * x7 + x4 * q - 2 * x2 * x6 * x8 - 1,
        x1 * a + x3 * b + x2 * c + x4 * d - 1,
        x3 * a - x1 * b + x4 * c - x2 * d - 1,
    )


def propane(xp, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11):
    P, R = 40, 10
    root = xp.sqrt(P / x11)
    return (
        x1 + x4 - 3,
        2 * x1 + x2 + x4 + x7 + x8 + x9 + 2 * x10 - R,
        2 * x2 + 2 * x5 + x6 + x7 - 8,
        2 * x3 + x9 - 4 * R,
        x2 * x4 - x1 * x5,
        xp.sqrt(x2 * x4) - xp.sqrt(x1) * root * x6,
        xp.sqrt(x1 * x2) - xp.sqrt(x4) * x7 * root,
        x1 - x4 * x8 * P / x11,
        x1 * xp.sqrt(x3) - x4 * x9 * root,
        x1**2 - x4**2 * x10 * P / x11,
        x11 - x1 - x2 - x3 - x4 - x5 - x6 - x7 - x8 - x9 - x10,
    )


def black_scholes(xp, S, K, r, sigma, T):
    """The greeks; each tool differentiates the price in its own way."""

    def price(S, K, r, sigma, T):
        def normal(z):
            return (1 + xp.erf(z / 2**0.5)) / 2

        F = xp.exp(r * T) * S
        d1 = (xp.log(F / K) + sigma**2 / 2 * T) / (sigma * xp.sqrt(T))
        d2 = d1 - sigma * xp.sqrt(T)
        return xp.exp(-r * T) * (F * normal(d1) - K * normal(d2))

    return xp.gradient(price, (S, K, r, sigma, T))


def softmax_of_rows(xp, x):
    weights = xp.exp(x - xp.constant(xp.maximum_of_rows(x)))
    return weights / xp.sum_of_rows(weights)


def layer_norm(xp, x, gamma, beta):
    """Of a vector, or with the statistics of row j along column j."""
    n = x.shape[-1]
    mean = x.sum(-1) / n
    variance = ((x - mean) ** 2).sum(-1) / n
    return (x - mean) / xp.sqrt(variance + 1e-6) * gamma + beta


def cross_entropy(xp, logits, target):
    return -(target * xp.log(softmax_of_rows(xp, logits))).sum(-1)


def perceptron(xp, x, y, W1, b1, W2, b2, gamma, beta):
    hidden = layer_norm(xp, xp.tanh(W1 @ x + b1), gamma, beta)
    return (cross_entropy(xp, xp.tanh(W2 @ hidden + b2), y),)


def encoder(xp, x, y, WQ1, WQ2, WK1, WK2, WV1, WV2, W1, W2, b1, b2, gamma0, beta0, gamma1, beta1):
    def block(x, WQ, WK, WV, W, b, gamma, beta):
        logits = xp.transpose(WQ @ x) @ (WK @ x)
        attended = x + softmax_of_rows(xp, logits) @ (WV @ x)
        z = W @ layer_norm(xp, attended, gamma, beta) + b
        return z * (1 / (1 + xp.exp(-z)))

    z = block(x, WQ1, WK1, WV1, W1, b1, gamma0, beta0)
    return (cross_entropy(xp, block(z, WQ2, WK2, WV2, W2, b2, gamma1, beta1), y),)


FUNCTIONS = {
    "RoeFlux_1d": roe_flux_1d,
    "RoeFlux_3d": roe_flux_3d,
    "RobotArm_6DOF": robot_arm,
    "HumanHeartDipole": human_heart,
    "PropaneCombustion": propane,
    "BlackScholes_Jacobian": black_scholes,
    "Perceptron": perceptron,
    "Encoder": encoder,
}
# What the tools for scalar code are meant for.
SCALAR = tuple(FUNCTIONS)[:6]
