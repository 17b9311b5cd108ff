// SPDX-License-Identifier: Apache-2.0
// Laws 1 to 4 on random programs: every valid order gives the Jacobian that dense
// local Jacobians give; the predicted cost is that of the recorded nodes.
#include <gtest/gtest.h>

#include "accumulation/accumulate.h"
#include "ir/interpreter.h"
#include "support/dense_jacobian.h"
#include "support/random_program.h"

namespace loipe {
namespace {

using testing::dense_jacobian;
using testing::random_arguments;
using testing::random_program;
using testing::relative_deviation;

std::vector<EliminationOrder> some_orders(const Program& program, std::uint64_t seed) {
  return {forward_order(program), reverse_order(program), random_order(program, seed),
          random_order(program, seed + 1000), random_order(program, seed + 2000)};
}

void expect_all_orders_agree(const Program& program, std::uint64_t seed) {
  std::vector<std::size_t> wrt;
  for (std::size_t i = 0; i < program.arguments().size(); ++i) wrt.push_back(i);
  const std::vector<Tensor> arguments = random_arguments(program, seed);
  // Entries far below 1 are differences of intermediate values of order 1: compare absolutely.
  const std::vector<Tensor> expected = dense_jacobian(program, arguments, wrt);
  for (const EliminationOrder& order : some_orders(program, seed)) {
    const Accumulation accumulation = accumulate(program, {wrt, order, {}});
    const std::vector<Tensor> results = evaluate(accumulation.program, arguments);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LT(relative_deviation(results[program.outputs().size() + i], expected[i], 1.0), 1e-11)
          << "seed " << seed << ", order " << order.name << ", block " << i;
    EXPECT_EQ(accumulation.cost.multiplications, accumulation.counted.multiplications)
        << "seed " << seed << " " << order.name;
    EXPECT_EQ(accumulation.cost.additions, accumulation.counted.additions)
        << "seed " << seed << " " << order.name;
  }
}

TEST(Elimination, EveryOrderGivesTheDenseJacobianOnRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    expect_all_orders_agree(random_program(seed), seed);
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
}

TEST(Elimination, EveryOrderGivesTheDenseJacobianWithManyOutputs) {
  for (std::uint64_t seed = 1001; seed <= 1050; ++seed) {
    expect_all_orders_agree(random_program(seed, {.nodes = 16, .all_sinks_are_outputs = true}), seed);
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
}

}  // namespace
}  // namespace loipe
