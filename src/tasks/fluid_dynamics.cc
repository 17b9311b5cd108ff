// SPDX-License-Identifier: Apache-2.0
// Roe's approximate Riemann solver for the Euler equations: the flux between two
// cells from their states (density, momentum, energy) to the left and right.
// P. L. Roe, Journal of Computational Physics 43 (1981).
#include "tasks/definitions.h"

namespace loipe::tasks {

namespace {

/// The published functions use this value, not that of air.
constexpr double kGamma = 0.5;

/// (gamma - 1) (energy - kinetic energy).
Traced pressure_1d(const Traced& density, const Traced& momentum, const Traced& energy) {
  const Traced kinetic = 0.5 * square(momentum) / density;
  return (kGamma - 1) * (energy - kinetic);
}

/// The average of a left and a right quantity, weighted by the roots of the densities.
struct RoeAverage {
  const Traced& left_density;
  const Traced& right_density;
  const Traced& weight_sum;

  Traced operator()(const Traced& left, const Traced& right) const {
    const Traced left_weight = sqrt(left_density);
    const Traced left_part = left_weight * left;
    const Traced right_weight = sqrt(right_density);
    const Traced right_part = right_weight * right;
    return (left_part + right_part) / weight_sum;
  }
};

struct Flux {
  Traced mass, momentum, energy;
};

Flux flux_1d(const Traced& density, const Traced& momentum, const Traced& energy, const Traced& pressure) {
  const Traced velocity = momentum / density;
  const Traced momentum_flux = pressure + momentum * velocity;
  const Traced energy_flux = velocity * (pressure + energy);
  return {momentum, momentum_flux, energy_flux};
}

std::vector<Traced> roe_flux_1d_function(const Traced& ul0, const Traced& ul1, const Traced& ul2,
                                         const Traced& ur0, const Traced& ur1, const Traced& ur2) {
  const Traced density_jump = ur0 - ul0;
  const Traced mean_density = sqrt(ul0 * ur0);
  const Traced left_weight = sqrt(ul0);
  const Traced right_weight = sqrt(ur0);
  const Traced weight_sum = left_weight + right_weight;
  const Traced left_velocity = ul1 / ul0;
  const Traced left_pressure = pressure_1d(ul0, ul1, ul2);
  const Traced left_enthalpy = (ul2 + left_pressure) / ul0;
  const Traced right_velocity = ur1 / ur0;
  const Traced right_pressure = pressure_1d(ur0, ur1, ur2);
  const Traced right_enthalpy = (ur2 + right_pressure) / ur0;
  const Traced pressure_jump = right_pressure - left_pressure;
  const Traced velocity_jump = right_velocity - left_velocity;

  const RoeAverage average{ul0, ur0, weight_sum};
  const Traced u = average(left_velocity, right_velocity);
  const Traced h = average(left_enthalpy, right_enthalpy);
  const Traced u_squared = square(u);
  const Traced a_squared = (kGamma - 1) * (h - 0.5 * u_squared);
  const Traced a = sqrt(a_squared);  // speed of sound
  const Traced speed_plus = abs(u + a);
  const Traced speed_zero = abs(u);
  const Traced speed_minus = abs(u);  // as published, instead of |u - a|

  // Strengths of the three waves.
  const Traced n = a * mean_density;
  const Traced c0 = (density_jump - pressure_jump / a_squared) * speed_zero;
  const Traced c1 = (velocity_jump + pressure_jump / n) * speed_plus;
  const Traced c2 = (velocity_jump - pressure_jump / n) * speed_minus;

  const Flux left = flux_1d(ul0, ul1, ul2, left_pressure);
  const Flux right = flux_1d(ur0, ur1, ur2, right_pressure);
  const Traced sum0 = left.mass + right.mass;
  const Traced sum1 = left.momentum + right.momentum;
  const Traced sum2 = left.energy + right.energy;

  const Traced c = 0.5 * mean_density / a;
  Traced jump0 = c0 + c * c1;
  jump0 -= c * c2;

  Traced jump1 = c0 * u;
  Traced strength = c * c1;
  jump1 += strength * (u + a);
  strength = c * c2;
  jump1 -= strength * (u - a);

  Traced jump2 = c0 * 0.5 * u_squared;
  strength = c * c1;
  jump2 += strength * (h + u * a);
  strength = c * c2;
  jump2 -= strength * (h - u * a);

  const Traced phi0 = 0.5 * (sum0 - jump0);
  const Traced phi1 = 0.5 * (sum1 - jump1);
  const Traced phi2 = 0.5 * (sum2 - jump2);
  return {phi0, phi1, phi2};
}

// In three dimensions all arrays are [batch, 1] or [batch, 3].

/// Components first to last - 1 of each example.
Traced components(const Traced& x, std::int64_t first, std::int64_t last) {
  return slice(x, {0, first}, {x.shape()[0], last});
}

/// [batch] -> [batch, 1].
Traced as_column(const Traced& x) { return broadcast_in_dim(x, {x.shape()[0], 1}, {0}); }

Traced pressure_3d(const Traced& density, const Traced& momentum, const Traced& energy) {
  const Traced half = 0.5 * sum(square(momentum), {1});
  const Traced kinetic = as_column(half) / density;
  return (kGamma - 1) * (energy - kinetic);
}

Flux flux_3d(const Traced& momentum, const Traced& velocity, const Traced& energy, const Traced& pressure) {
  const std::int64_t batch = momentum.shape()[0];
  const Traced first_velocity = components(velocity, 0, 1);
  const Traced no_pressure = zeros({2}, pressure.dtype());
  const Traced for_each_example = broadcast_in_dim(no_pressure, {batch, 2}, {1});
  const Traced pressure_vector = concatenate({pressure, for_each_example}, 1);
  const Traced mass_flux = components(momentum, 0, 1);
  const Traced momentum_flux = pressure_vector + momentum * velocity;
  const Traced energy_flux = first_velocity * (pressure + energy);
  return {mass_flux, momentum_flux, energy_flux};
}

/// a s + b s + c s + d s, term by term.
Traced sum_of_multiples(const Traced& s, const Traced& a, const Traced& b, const Traced& c, const Traced& d) {
  Traced total = a * s;
  total += b * s;
  total += c * s;
  total += d * s;
  return total;
}

std::vector<Traced> roe_flux_3d_function(const Traced& ul0, const Traced& ul, const Traced& ul4,
                                         const Traced& ur0, const Traced& ur, const Traced& ur4) {
  const Traced density_jump = ur0 - ul0;
  const Traced momentum_jump = ur - ul;
  const Traced jump_x = components(momentum_jump, 0, 1);
  const Traced jump_y = components(momentum_jump, 1, 2);
  const Traced jump_z = components(momentum_jump, 2, 3);
  const Traced energy_jump = ur4 - ul4;
  const Traced left_velocity = ul / ul0;
  const Traced right_velocity = ur / ur0;
  const Traced left_weight = sqrt(ul0);
  const Traced right_weight = sqrt(ur0);
  const Traced weight_sum = left_weight + right_weight;
  const RoeAverage average{ul0, ur0, weight_sum};
  const Traced velocity = average(left_velocity, right_velocity);
  const Traced u = components(velocity, 0, 1);
  const Traced v = components(velocity, 1, 2);
  const Traced w = components(velocity, 2, 3);
  const Traced left_pressure = pressure_3d(ul0, ul, ul4);
  const Traced left_enthalpy = (ul4 + left_pressure) / ul0;
  const Traced right_pressure = pressure_3d(ur0, ur, ur4);
  const Traced right_enthalpy = (ur4 + right_pressure) / ur0;
  const Traced h = average(left_enthalpy, right_enthalpy);

  const Traced q_squared = sum(square(velocity), {1});  // [batch]
  const Traced half_q_squared = 0.5 * q_squared;
  const Traced a_squared = (kGamma - 1) * (h - as_column(half_q_squared));
  const Traced a = sqrt(a_squared);
  const Traced speed_plus = u + a;  // no absolute values, as published
  const Traced speed_minus = u - a;

  // Strengths of the five waves; the middle three travel with speed u.
  const Traced scale = (kGamma - 1) / a_squared;
  Traced inner = (h - as_column(q_squared)) * density_jump;
  const Traced work = dot_general(velocity, momentum_jump, {{1}, {1}, {0}, {0}});  // [batch]
  inner += as_column(work);
  inner -= energy_jump;
  const Traced c3 = scale * inner * u;
  const Traced c2 = (jump_z / w - jump_x) * u;
  const Traced c1 = (jump_y / v - density_jump) * u;
  const Traced k1 = density_jump - c3;
  const Traced k2 = (jump_x - u * density_jump) / a;
  const Traced c0 = 0.5 * (k1 - k2) * speed_minus;
  const Traced c4 = 0.5 * (k1 + k2) * speed_plus;

  const Flux left = flux_3d(ul, left_velocity, ul4, left_pressure);
  const Flux right = flux_3d(ur, right_velocity, ur4, right_pressure);
  const Traced sum0 = left.mass + right.mass;
  const Traced sum123 = left.momentum + right.momentum;
  const Traced sum4 = left.energy + right.energy;

  Traced d0 = c0 + c3;
  d0 += c4 * speed_plus;
  Traced d1 = c0 * speed_minus;
  d1 += c3 * u;
  d1 += c4 * speed_plus;
  const Traced d2 = sum_of_multiples(v, c0, c1, c3, c4);
  const Traced d3 = sum_of_multiples(w, c0, c2, c3, c4);
  Traced d4 = c0 * (h - u * a);
  d4 += c1 * square(v);
  d4 += c2 * square(w);
  const Traced half_c3 = c3 * 0.5;
  d4 += half_c3 * as_column(q_squared);
  d4 += c4 * (h + u * a);
  const Traced d123 = concatenate({d1, d2, d3}, 1);

  const Traced phi0 = 0.5 * (sum0 - d0);
  const Traced phi123 = 0.5 * (sum123 - d123);
  const Traced phi4 = 0.5 * (sum4 - d4);
  return {phi0, phi123, phi4};
}

}  // namespace

Task roe_flux_1d() {
  return {
      .name = "RoeFlux_1d",
      .summary = "Roe's approximate Riemann solver in one dimension",
      .arguments =
          [](const TaskOptions& o) { return scalars(o, {"ul0", "ul1", "ul2", "ur0", "ur1", "ur2"}); },
      .function = detail::pack_function<6>(roe_flux_1d_function),
      // A little further away the square of the speed of sound becomes negative.
      .inputs = {.point = {.01, .02, .02, .01, .03, .03}, .jitter = 0.03},
  };
}

Task roe_flux_3d() {
  return {
      .name = "RoeFlux_3d",
      .summary = "Roe's approximate Riemann solver in three dimensions",
      .has_batch_axis = true,
      .arguments =
          [](const TaskOptions& o) {
            const TensorType number{o.dtype, {o.batch, 1}}, vector{o.dtype, {o.batch, 3}};
            return std::vector<Argument>{{"ul0", number}, {"ul", vector}, {"ul4", number},
                                         {"ur0", number}, {"ur", vector}, {"ur4", number}};
          },
      .function = detail::pack_function<6>(roe_flux_3d_function),
      .inputs = {.point = {.1, .1, .2, .3, .5, .2, .2, .2, .4, .6}, .jitter = 0.01},
  };
}

}  // namespace loipe::tasks
