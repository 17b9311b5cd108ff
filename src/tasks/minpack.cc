// SPDX-License-Identifier: Apache-2.0
// Two systems of nonlinear equations of the MINPACK-2 collection: B. Averick,
// R. Carter, J. More, G. Xue, "The MINPACK-2 test problem collection" (1992).
#include "tasks/definitions.h"

namespace loipe::tasks {

namespace {

/// a (a^2 - 3 b^2), the real part of (a + ib)^3.
Traced cube_part(const Traced& a, const Traced& b) {
  const Traced a_squared = square(a);
  const Traced b_squared = square(b);
  return a * (a_squared - 3 * b_squared);
}

/// a^2 - b^2.
Traced square_part(const Traced& a, const Traced& b) {
  const Traced a_squared = square(a);
  const Traced b_squared = square(b);
  return a_squared - b_squared;
}

/// The eight moments of two dipoles; all measured moments are 1.
std::vector<Traced> human_heart_function(const Traced& x1, const Traced& x2, const Traced& x3,
                                         const Traced& x4, const Traced& x5, const Traced& x6,
                                         const Traced& x7, const Traced& x8) {
  const Traced f1 = x1 + x2 - 1;
  const Traced f2 = x3 + x4 - 1;
  Traced f3 = x5 * x1;
  f3 += x6 * x2;
  f3 -= x7 * x3;
  f3 -= x8 * x4;
  f3 -= 1;
  Traced f4 = x7 * x1;
  f4 += x8 * x2;
  f4 += x5 * x3;
  f4 += x6 * x4;
  f4 -= 1;
  const Traced x57 = square_part(x5, x7);
  const Traced x68 = square_part(x6, x8);
  Traced f5 = x1 * x57;
  f5 -= 2 * x3 * x5 * x7;
  f5 += x2 * x68;
  f5 -= 2 * x4 * x6 * x8;
  f5 -= 1;
  Traced f6 = x3 * x57;
  f6 -= 2 * x1 * x5 * x7;
  f6 += x4 * x68;
  f6 -= 2 * x2 * x6 * x8;
  f6 -= 1;
  const Traced x557 = cube_part(x5, x7);
  const Traced x775 = cube_part(x7, x5);
  const Traced x668 = cube_part(x6, x8);
  const Traced x886 = cube_part(x8, x6);
  Traced f7 = x1 * x557;
  f7 += x3 * x775;
  f7 += x2 * x668;
  f7 += x4 * x886;
  f7 -= 1;
  Traced f8 = x3 * x557;
  f8 -= x1 * x775;
  f8 += x4 * x668;
  f8 -= x2 * x886;
  f8 -= 1;
  return {f1, f2, f3, f4, f5, f6, f7, f8};
}

constexpr double kPressure = 40;
constexpr double kAirRatio = 10;

/// Chemical equilibrium of burning propane in air: amounts of ten products and,
/// as x11, their sum.
std::vector<Traced> propane_function(const Traced& x1, const Traced& x2, const Traced& x3, const Traced& x4,
                                     const Traced& x5, const Traced& x6, const Traced& x7, const Traced& x8,
                                     const Traced& x9, const Traced& x10, const Traced& x11) {
  const Traced root = sqrt(kPressure / x11);
  const Traced f1 = x1 + x4 - 3;
  Traced f2 = 2 * x1 + x2 + x4 + x7 + x8 + x9;
  f2 += 2 * x10;
  f2 -= kAirRatio;
  Traced f3 = 2 * x2;
  f3 += 2 * x5;
  f3 = f3 + x6 + x7 - 8;
  const Traced f4 = 2 * x3 + x9 - 4 * kAirRatio;
  Traced f5 = x2 * x4;
  f5 -= x1 * x5;
  Traced f6 = sqrt(x2 * x4);
  f6 -= sqrt(x1) * root * x6;
  Traced f7 = sqrt(x1 * x2);
  f7 -= sqrt(x4) * x7 * root;
  const Traced f8 = x1 - x4 * x8 * kPressure / x11;
  Traced f9 = x1 * sqrt(x3);
  f9 -= x4 * x9 * root;
  Traced f10 = square(x1);
  f10 -= square(x4) * x10 * kPressure / x11;
  const Traced f11 = x11 - x1 - x2 - x3 - x4 - x5 - x6 - x7 - x8 - x9 - x10;
  return {f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11};
}

}  // namespace

Task human_heart_dipole() {
  return {
      .name = "HumanHeartDipole",
      .summary = "moments of the electric dipole of the human heart (MINPACK-2)",
      .arguments =
          [](const TaskOptions& o) { return scalars(o, {"x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8"}); },
      .function = detail::pack_function<8>(human_heart_function),
      .inputs = {.point = std::vector<double>(8, .15)},
  };
}

Task propane_combustion() {
  return {
      .name = "PropaneCombustion",
      .summary = "chemical equilibrium of burning propane in air (MINPACK-2)",
      .arguments =
          [](const TaskOptions& o) {
            return scalars(o, {"x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11"});
          },
      .function = detail::pack_function<11>(propane_function),
      .inputs = {.point = std::vector<double>(11, .15)},
  };
}

}  // namespace loipe::tasks
