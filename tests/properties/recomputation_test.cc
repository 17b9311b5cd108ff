// SPDX-License-Identifier: Apache-2.0
// Law: computing values again changes no bit, whatever is computed again, and lowers what is
// live at once where there are many layers.
#include "passes/recomputation/recomputation.h"

#include <gtest/gtest.h>
#include <loipe/trace.h>

#include <cmath>

#include "accumulation/accumulate.h"
#include "frontends/trace.h"
#include "ir/interpreter.h"
#include "ir/verifier.h"
#include "orders/order.h"
#include "passes/runner.h"
#include "passes/schedule/schedule.h"

namespace loipe {
namespace {

/// A network of layers, some with a way around them, and its gradient by everything.
Program gradient_program(std::int64_t layers, bool has_residuals) {
  std::vector<Argument> arguments{{"x", {DType::f64, {40, 3}}}};
  for (std::int64_t l = 0; l < layers; ++l)
    arguments.push_back({"w" + std::to_string(l), {DType::f64, {3, 3}}});
  const Program program = trace("network", arguments, [&](std::span<const Traced> a) {
    Traced y = a[0];
    for (std::size_t l = 1; l < a.size(); ++l) {
      const Traced inside = tanh(matmul(exp(sin(y)), a[l]));
      y = has_residuals ? y + inside * cos(inside) : inside;
    }
    return std::vector<Traced>{sum(square(y))};
  });
  std::vector<std::size_t> wrt;
  for (std::size_t i = 0; i < arguments.size(); ++i) wrt.push_back(i);
  return run_passes(accumulate(program, {wrt, reverse_order(program), {}}).program);
}

std::vector<Tensor> inputs_of(const Program& program) {
  std::vector<Tensor> inputs;
  for (Value argument : program.arguments()) {
    inputs.emplace_back(program.type(argument));
    for (std::int64_t i = 0; i < inputs.back().element_count(); ++i)
      inputs.back().set(i, std::sin(static_cast<double>(3 * i) + static_cast<double>(inputs.size())));
  }
  return inputs;
}

TEST(Recomputation, ChangesNoBitAndLowersThePeak) {
  for (bool has_residuals : {false, true}) {
    const Program kept = gradient_program(8, has_residuals);
    const std::vector<Tensor> inputs = inputs_of(kept), expected = evaluate(kept, inputs);
    std::int64_t least = passes::peak_live_bytes(kept);
    for (std::size_t stride : {1U, 2U, 3U, 5U}) {
      const std::size_t segments = count_segments(kept, 1, stride);
      EXPECT_GT(segments, 0U);
      for (std::size_t again = 0; again <= segments; ++again)
        for (bool keeps_expensive : {true, false}) {
          SCOPED_TRACE("stride " + std::to_string(stride) + ", " + std::to_string(again) + " segments");
          const Program program = with_recomputation(kept, {1, stride, again, keeps_expensive});
          verify(program);
          least = std::min(least, passes::peak_live_bytes(program));
          const std::vector<Tensor> actual = evaluate(program, inputs);
          ASSERT_EQ(actual.size(), expected.size());
          for (std::size_t k = 0; k < actual.size(); ++k)
            EXPECT_TRUE(std::ranges::equal(actual[k].bytes(), expected[k].bytes())) << "output " << k;
        }
    }
    EXPECT_LT(least, 7 * passes::peak_live_bytes(kept) / 10);
  }
}

TEST(Recomputation, ProgramsWithoutCutsStayAsTheyAre) {
  const std::vector<Argument> arguments{{"x", {DType::f64, {3}}}};
  const Program program =
      trace("f", arguments, [](std::span<const Traced> a) { return std::vector<Traced>{a[0] * 2.0}; });
  EXPECT_EQ(count_segments(program, 1, 1), 0U);
  EXPECT_EQ(with_recomputation(program, {1, 1, 5, false}).size(), program.size());
}

}  // namespace
}  // namespace loipe
