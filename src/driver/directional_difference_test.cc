// SPDX-License-Identifier: Apache-2.0
#include "driver/directional_difference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/interpreter.h"
#include "ir/parser.h"

namespace loipe {
namespace {

TEST(DirectionalDifference, IsCloseToRounding) {
  const TensorFunction f = [](std::span<const Tensor> arguments) {
    const double x = arguments[0].at(0), y = arguments[0].at(1);
    return std::vector<Tensor>{Tensor::of<double>({2}, {std::exp(x) * std::sin(y), x / y})};
  };
  const std::vector<Tensor> point{Tensor::of<double>({2}, {.3, .7})},
      direction{Tensor::of<double>({2}, {1, -2})};
  const std::vector<Tensor> found = directional_difference(f, point, direction, .05);
  EXPECT_NEAR(found[0].at(0), std::exp(.3) * (std::sin(.7) - 2 * std::cos(.7)), 1e-11);
  EXPECT_NEAR(found[0].at(1), 1 / .7 + 2 * .3 / .49, 1e-11);
}

TEST(DirectionalDifference, StoppedValuesStayFixed) {
  const Program program = program_from_text(
      "program f(%x: f64[]) {\n  %1 = sin(%x)\n  %2 = stop_gradient(%1)\n  %3 = mul(%2, %x)\n  return "
      "%3\n}\n");
  const std::vector<Tensor> at_one{Tensor::scalar(1.0)}, at_two{Tensor::scalar(2.0)};
  const Program fixed = with_stopped_values(program, at_one);
  EXPECT_EQ(evaluate(fixed, at_one), evaluate(program, at_one));
  EXPECT_DOUBLE_EQ(evaluate(fixed, at_two)[0].at(0), 2 * std::sin(1.0));
}

}  // namespace
}  // namespace loipe
