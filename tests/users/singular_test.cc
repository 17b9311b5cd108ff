// SPDX-License-Identifier: Apache-2.0
// Values and derivatives that users of other tools found to be wrong at zeros, ties and
// behind masks. Each test is named after its number in the list of user demands.
#include <cmath>
#include <limits>

#include "every_way.h"

namespace loipe::testing {
namespace {

using Arguments = std::span<const Traced>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Users, U40_WhatABranchHidesIsNotMultiplied) {
  check_in_every_way([](Arguments x) { return select(x[0] > 0, 0, x[0] * kInfinity); }, {Tensor::scalar(1.0)},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {0}, 0);
                       expect_entries(d.by[0], {0}, 0);
                     });
}

TEST(Users, U41_RootsOfNegativesInTheOtherBranch) {
  check_in_every_way([](Arguments x) { return select(x[0] >= 0, x[0], sqrt(-x[0])); }, {Tensor::scalar(1.0)},
                     [](const Derivatives& d) { expect_entries(d.by[0], {1}, 0); });
  check_in_every_way(
      [](Arguments x) {
        const Traced delta = constant(vector_of({0, 1})) * x[0];
        return sum(select(delta > 0, pow(delta, 0.5), 0));
      },
      {Tensor::scalar(1.0)}, [](const Derivatives& d) { expect_entries(d.by[0], {0.5}, 1e-15); });
}

TEST(Users, U43_SquareOfANorm) {
  const auto square_of_norm = [](Arguments x) { return square(norm(x[0])); };
  check_in_every_way(square_of_norm, {vector_of({0, 0})},
                     [](const Derivatives& d) { expect_entries(d.by[0], {0, 0}, 0); });
  check_in_every_way(square_of_norm, {vector_of({1, 1})}, [](const Derivatives& d) {
    expect_entries(d.by[0], {2, 2}, std::numeric_limits<double>::epsilon());
  });
}

TEST(Users, U44_NormOfTinyNumbersInSinglePrecision) {
  for (const auto& [x, expected] :
       {std::pair(1.0f, 1.0), {0.0f, 0.0}, {1e-16f, 1.0}, {1e-19f, 1.0}, {1e30f, 1.0}})
    check_in_every_way([](Arguments v) { return norm(v[0]); }, {floats_of({x})},
                       [&](const Derivatives& d) { expect_entries(d.by[0], {expected}, 1e-6); });
}

TEST(Users, U46_PowersAtZero) {
  const std::pair<double, double> slopes[] = {{0, 0}, {1, 1},           {2, 0},
                                              {3, 0}, {0.5, kInfinity}, {-1, -kInfinity}};
  for (const auto& [p, expected] : slopes) {
    const double exponent = p;
    check_in_every_way([=](Arguments x) { return pow(x[0], exponent); }, {Tensor::scalar(0.0)},
                       [&](const Derivatives& d) { expect_entries(d.by[0], {expected}, 0); });
    if (p == std::floor(p))
      check_in_every_way([=](Arguments x) { return integer_pow(x[0], static_cast<std::int64_t>(exponent)); },
                         {Tensor::scalar(0.0)},
                         [&](const Derivatives& d) { expect_entries(d.by[0], {expected}, 0); });
  }
}

TEST(Users, U47_OneTableOfTieRules) {
  const auto relu_by_op = [](Arguments x) { return relu(x[0]); };
  const auto relu_by_hand = [](Arguments x) { return select(x[0] > 0, x[0], 0); };
  const auto at_zero = [](const Derivatives& d) { expect_entries(d.by[0], {0}, 0); };
  check_in_every_way(relu_by_op, {Tensor::scalar(0.0)}, at_zero);
  check_in_every_way(relu_by_hand, {Tensor::scalar(0.0)}, at_zero);
  const auto pair_sums_to_one = [](const Derivatives& d) {
    expect_entries(d.by[0], {0.5}, 0);
    expect_entries(d.by[1], {0.5}, 0);
  };
  const std::vector<Tensor> equal{Tensor::scalar(3.0), Tensor::scalar(3.0)};
  check_in_every_way([](Arguments x) { return max(x[0], x[1]); }, equal, pair_sums_to_one);
  check_in_every_way([](Arguments x) { return -min(-x[0], -x[1]); }, equal, pair_sums_to_one);
  check_in_every_way(
      [](Arguments x) { return reduce_max(concatenate({reshape(x[0], {1}), reshape(x[1], {1})}, 0)); }, equal,
      pair_sums_to_one);
}

TEST(Users, U88_SelectHasADerivative) {
  for (const auto& [x, expected] : {std::pair(2.0, 4.0), {-2.0, 1.0}})
    check_in_every_way([](Arguments v) { return select(v[0] > 0, square(v[0]), v[0]); }, {Tensor::scalar(x)},
                       [&](const Derivatives& d) { expect_entries(d.by[0], {expected}, 0); });
}

TEST(Users, U91_MaxAbsSign) {
  check_in_every_way([](Arguments x) { return max(x[0], x[1]); }, {Tensor::scalar(3.0), Tensor::scalar(1.0)},
                     [](const Derivatives& d) {
                       expect_entries(d.by[0], {1}, 0);
                       expect_entries(d.by[1], {0}, 0);
                     });
  check_in_every_way([](Arguments x) { return abs(x[0]); }, {Tensor::scalar(0.0)},
                     [](const Derivatives& d) { expect_entries(d.by[0], {0}, 0); });
  check_in_every_way([](Arguments x) { return sign(x[0]); }, {Tensor::scalar(2.0)},
                     [](const Derivatives& d) { expect_entries(d.by[0], {0}, 0); });
}

}  // namespace
}  // namespace loipe::testing
