// SPDX-License-Identifier: Apache-2.0
// The five greeks of a European call option by the Black-Scholes formula:
//
//   F  = S exp(rT)                                  forward price
//   d1 = (log(F / K) + sigma^2 T / 2) / (sigma sqrt T),   d2 = d1 - sigma sqrt T
//   V  = exp(-rT) (F Phi(d1) - K Phi(d2)),   Phi(z) = (1 + erf(z / sqrt 2)) / 2
//
// The published function is itself a program of derivatives: the formula with the
// partials of each operation behind it, then the elimination of its vertices in
// reverse order, one product for each pair of edges. To have the same vertices,
// this file keeps what that program computes in vain: factors 1, and the partials
// of sqrt(2) and of quotients by a number.
#include <numbers>

#include "tasks/definitions.h"

namespace loipe::tasks {

namespace {

/// Marks what is recorded, but used by nothing.
void in_vain(const Traced&) {}

/// x / y and its partials.
struct Quotient {
  Traced value, by_x, by_y;

  static Quotient of(const Traced& x, const Traced& y) {
    const Traced quotient = x / y;
    const Traced by_numerator = 1 / y;
    const Traced minus_x = -x;
    return {quotient, by_numerator, minus_x / square(y)};
  }
};

/// x / divisor. The partial by x is a number, that by the divisor is not used.
Traced divided(const Traced& x, double divisor) {
  Traced quotient = x / divisor;
  in_vain(-x / (divisor * divisor));
  return quotient;
}

/// sqrt(x) and its derivative.
struct Root {
  Traced value, derivative;

  static Root of(const Traced& x) {
    const Traced root = sqrt(x);
    return {root, 0.5 / root};
  }
};

/// The normal distribution function, built as (1 + erf(z / sqrt 2)) / 2.
struct NormalDistribution {
  Quotient scaled;
  Traced erf_derivative, value;

  static NormalDistribution of(const Traced& z) {
    const Traced two = full({}, 2, z.dtype());
    const Traced pi = full({}, std::numbers::pi, z.dtype());
    const Root root_two = Root::of(two);
    const Quotient scaled = Quotient::of(z, convert(root_two.value, z.dtype()));
    const Traced error_function = erf(scaled.value);
    const Traced doubled = 2 * exp(-square(scaled.value));  // erf'(x) = 2 exp(-x^2) / sqrt(pi)
    const Traced root_pi = convert(sqrt(pi), z.dtype());
    const Traced erf_derivative = doubled / root_pi;
    return {scaled, erf_derivative, divided(1 + error_function, 2)};
  }

  /// Derivatives from that of the value: by z, and by the divisor sqrt 2, in vain.
  Traced pull_back(const Traced& by_value) const {
    const Traced by_sum = by_value * 0.5;
    const Traced by_erf = by_sum * 1;
    const Traced by_scaled = by_erf * erf_derivative;
    Traced by_z = by_scaled * scaled.by_x;
    in_vain(by_scaled * scaled.by_y);
    return by_z;
  }
};

std::vector<Traced> greeks(const Traced& S, const Traced& K, const Traced& r, const Traced& sigma,
                           const Traced& T) {
  const Traced one = full({}, 1, S.dtype());

  // The price, and the partials of each step.
  const Traced growth = exp(r * T);
  const Traced F = growth * S;
  const Quotient moneyness = Quotient::of(F, K);
  const Traced log_moneyness = log(moneyness.value);
  const Traced log_derivative = 1 / moneyness.value;
  const Traced variance = square(sigma);
  const Traced variance_derivative = 2 * integer_pow(sigma, 1);
  const Traced half_variance = divided(variance, 2);
  const Traced drift = half_variance * T;
  const Traced numerator = log_moneyness + drift;
  const Root root_T1 = Root::of(T);
  const Traced deviation1 = sigma * root_T1.value;
  const Quotient d1 = Quotient::of(numerator, deviation1);
  const Root root_T2 = Root::of(T);
  const Traced deviation2 = sigma * root_T2.value;
  const Traced d2 = d1.value - deviation2;
  const Traced d2_by_deviation = -one;
  const Traced minus_r = -r;
  const Traced minus_r_by_r = -one;
  const Traced discount = exp(minus_r * T);
  const NormalDistribution phi1 = NormalDistribution::of(d1.value);
  const Traced gain = F * phi1.value;
  const NormalDistribution phi2 = NormalDistribution::of(d2);
  const Traced loss = K * phi2.value;
  const Traced difference = gain - loss;
  const Traced difference_by_loss = -one;
  in_vain(discount * difference);  // the price, which is no output

  // Derivatives of the price, from the last step to the first. What has several
  // uses is a sum: of the latest of them in this order and those before.
  const Traced by_gain = discount * 1;
  const Traced by_loss = discount * difference_by_loss;
  const Traced K_by_loss = by_loss * phi2.value;
  const Traced by_d2 = phi2.pull_back(by_loss * K);
  const Traced F_by_gain = by_gain * phi1.value;
  const Traced d1_by_phi1 = phi1.pull_back(by_gain * F);
  const Traced by_exponent = difference * discount;
  const Traced by_minus_r = by_exponent * T;
  const Traced T_by_discount = by_exponent * minus_r;
  const Traced r_by_discount = by_minus_r * minus_r_by_r;
  const Traced by_d1 = by_d2 * 1 + d1_by_phi1;
  const Traced by_deviation2 = by_d2 * d2_by_deviation;
  const Traced sigma_by_deviation2 = by_deviation2 * root_T2.value;
  const Traced by_root_T2 = by_deviation2 * sigma;
  const Traced T_by_root2 = by_root_T2 * root_T2.derivative + T_by_discount;
  const Traced by_numerator = by_d1 * d1.by_x;
  const Traced by_deviation1 = by_d1 * d1.by_y;
  const Traced sigma_by_deviations = by_deviation1 * root_T1.value + sigma_by_deviation2;
  const Traced by_root_T1 = by_deviation1 * sigma;
  const Traced T_by_roots = by_root_T1 * root_T1.derivative + T_by_root2;
  const Traced by_log = by_numerator * 1;
  const Traced by_drift = by_numerator * 1;
  const Traced by_half_variance = by_drift * T;
  const Traced T_by_drift = by_drift * half_variance + T_by_roots;
  const Traced by_variance = by_half_variance * 0.5;
  const Traced vega = by_variance * variance_derivative + sigma_by_deviations;
  const Traced by_moneyness = by_log * log_derivative;
  const Traced by_F = by_moneyness * moneyness.by_x + F_by_gain;
  const Traced dual_delta = by_moneyness * moneyness.by_y + K_by_loss;
  const Traced by_growth = by_F * S;
  const Traced delta = by_F * growth;
  const Traced by_rT = by_growth * growth;
  const Traced rho = by_rT * T + r_by_discount;
  const Traced theta = by_rT * r + T_by_drift;
  return {delta, dual_delta, rho, vega, theta};
}

}  // namespace

Task black_scholes_jacobian() {
  return {
      .name = "BlackScholes_Jacobian",
      .summary = "the five greeks of a European call option; its Jacobian is the Hessian of the price",
      .has_batch_axis = true,
      .arguments =
          [](const TaskOptions& o) {
            return arguments_of_shape(o, {o.batch}, {"S", "K", "r", "sigma", "T"});
          },
      .function = detail::pack_function<5>(greeks),
      .inputs = {.point = std::vector<double>(5, 1.0)},
  };
}

}  // namespace loipe::tasks
