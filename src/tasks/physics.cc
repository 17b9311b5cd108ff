// SPDX-License-Identifier: Apache-2.0
#include "tasks/definitions.h"

namespace loipe::tasks {

namespace {

/// x log(x / (1 - sum x)): the terms of the Helmholtz free energy of a mixture with
/// mole fractions x (4).
Traced helmholtz_function(const Traced& x) {
  const Traced total = sum(x);
  const Traced rest = 1 + -total;
  return x * log(x / rest);
}

Traced free_energy_function(const Traced& x) { return sum(helmholtz_function(x)); }

/// Entries of the Kerr-Sen metric, a rotating charged black hole: A. Sen, Physical
/// Review Letters 69 (1992). Coordinates t and phi do not occur, and Sigma is an
/// output that is also used.
std::vector<Traced> kerr_senn_function(const Traced& /*t*/, const Traced& r, const Traced& theta,
                                       const Traced& /*phi*/) {
  constexpr double a = 0.5, b = 0.9, mass = 1;
  const Traced sin_squared = square(sin(theta));
  Traced sigma = square(r);
  sigma += 2 * b * r;
  sigma += a * a * square(cos(theta));
  Traced delta = square(r);
  delta += 2 * b * r;
  delta -= 2 * mass * r;
  delta += a * a;

  const Traced g_tt = -(1 - 2 * mass * r / sigma);
  const Traced g_rr = sigma / delta;
  Traced inner = sigma + a * a * sin_squared;
  inner += 2 * mass * r * (a * a) * sin_squared / sigma;
  const Traced g_phi = inner * sin_squared;
  const Traced g_t_phi = -2 * mass * r * a / sin_squared;
  return {g_tt, g_rr, sigma, g_phi, g_t_phi};
}

constexpr double kCloudWater = 1, kRainWater = 1;

/// coefficient * cloud water ^ exponent.
Traced autoconversion(const Traced& coefficient, const Traced& exponent) {
  return coefficient * pow(kCloudWater, exponent);
}

/// Rain that evaporates.
Traced evaporation(const Traced& e1, const Traced& e2, const Traced& d1, const Traced& d2) {
  const Traced first = e1 * pow(kRainWater, d1);
  return first + e2 * pow(kRainWater, d2);
}

/// One step of a warm cloud: tendencies of cloud water, rain water and vapour. All
/// amounts are 1, so that the derivatives by the exponents vanish.
std::vector<Traced> cloud_schemes_function(const Traced& a1, const Traced& a2, const Traced& e1,
                                           const Traced& e2, const Traced& delta, const Traced& gamma,
                                           const Traced& bc, const Traced& br, const Traced& d1,
                                           const Traced& d2, const Traced& chi) {
  constexpr double condensation = 1, sources = 0;
  Traced cloud = condensation - autoconversion(a1, gamma);
  Traced accretion = a2 * pow(kCloudWater, bc);
  accretion *= pow(kRainWater, br);
  cloud -= accretion;

  Traced rain = autoconversion(a1, gamma);
  rain += evaporation(e1, e2, d1, d2);
  rain += sources;
  rain -= delta * pow(kRainWater, chi);

  const Traced vapour = -condensation - evaporation(e1, e2, d1, d2);
  return {cloud, rain, vapour};
}

std::vector<Argument> mole_fractions(const TaskOptions& options) {
  return arguments_of_shape(options, {4}, {"x"});
}

}  // namespace

Task helmholtz() {
  return {
      .name = "Helmholtz",
      .summary = "terms of the Helmholtz free energy of a mixture of four substances",
      .arguments = mole_fractions,
      .function = detail::pack_function<1>(helmholtz_function),
      .inputs = {.point = {.05, .15, .15, .2}},
  };
}

Task free_energy() {
  return {
      .name = "FreeEnergy",
      .summary = "Helmholtz free energy of a mixture of four substances",
      .arguments = mole_fractions,
      .function = detail::pack_function<1>(free_energy_function),
      .inputs = {.point = {.05, .15, .15, .2}},
  };
}

Task kerr_senn() {
  return {
      .name = "KerrSenn",
      .aliases = {"KerrSenn_metric"},
      .summary = "entries of the metric of a rotating charged black hole",
      .arguments = [](const TaskOptions& o) { return scalars(o, {"t", "r", "theta", "phi"}); },
      .function = detail::pack_function<4>(kerr_senn_function),
      .inputs = {.point = {1, 2, .9, .4}},
  };
}

Task cloud_schemes() {
  return {
      .name = "CloudSchemes",
      .aliases = {"CloudSchemes_step"},
      .summary = "one step of a warm cloud: tendencies of cloud water, rain water and vapour",
      .arguments =
          [](const TaskOptions& o) {
            return scalars(o, {"a1", "a2", "e1", "e2", "delta", "gamma", "bc", "br", "d1", "d2", "chi"});
          },
      .function = detail::pack_function<11>(cloud_schemes_function),
      .inputs = {.point = {.7, .4, .3, .2, .6, 1.5, 1.2, .9, .8, .5, 1.1}},
  };
}

}  // namespace loipe::tasks
