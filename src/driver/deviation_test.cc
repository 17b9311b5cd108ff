// SPDX-License-Identifier: Apache-2.0
#include "driver/deviation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace loipe {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double error(std::vector<double> results, std::vector<double> reference) {
  const auto tensor = [](const std::vector<double>& elements) {
    return std::vector<Tensor>{
        Tensor::of<double>({static_cast<std::int64_t>(elements.size())}, std::span(elements))};
  };
  return max_relative_error(tensor(results), tensor(reference), 0);
}

TEST(Deviation, IsRelativeToTheLargestEntry) {
  EXPECT_DOUBLE_EQ(error({1, 10.5}, {1, 10}), .05);
  EXPECT_EQ(error({0, 0}, {0, 0}), 0);
}

TEST(Deviation, OfValuesThatAreNotFinite) {
  EXPECT_EQ(error({kNaN, 1}, {kNaN, 1}), 0);
  EXPECT_EQ(error({kInfinity, 1}, {kInfinity, 1}), 0);
  EXPECT_EQ(error({kNaN, 1}, {1, 1}), kInfinity);
  EXPECT_EQ(error({kInfinity, 1}, {-kInfinity, 1}), kInfinity);
}

TEST(Deviation, NegligibleBlocksAreComparedWithTheWholeJacobian) {
  const std::vector<Tensor> reference{Tensor::scalar(5.0), Tensor::scalar(100.0), Tensor::scalar(1e-12)};
  const std::vector<Tensor> results{Tensor::scalar(5.0), Tensor::scalar(100.0), Tensor::scalar(2e-12)};
  EXPECT_NEAR(max_relative_error(results, reference, 1), 1e-8, 1e-20);
}

}  // namespace
}  // namespace loipe
