// SPDX-License-Identifier: Apache-2.0
// Kernels of random groups: compiled, interpreted and in blocks they agree.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/kernel_collector.h"
#include "backends/cpu/simd_level.h"
#include "backends/cpu/steps/block_step.h"
#include "backends/cpu/steps/kernel_step.h"
#include "backends/kernel/kernel_interpreter.h"
#include "backends/llvm/jit_session.h"
#include "backends/llvm/kernel_compiler.h"
#include "support/random_group.h"

namespace loipe {
namespace {

using testing::RandomGroup;

class KernelEmitterTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("LOIPE_SIMD", GetParam(), 1);
    try {
      cpu::kernels_of_this_cpu();
    } catch (const std::exception&) {
      GTEST_SKIP() << "not on this CPU";
    }
  }
  void TearDown() override { unsetenv("LOIPE_SIMD"); }
};
INSTANTIATE_TEST_SUITE_P(Simd, KernelEmitterTest, ::testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& level) { return std::string(level.param); });

const Shape kSpaces[] = {{1},        {3},          {17},        {64},          {1000},      {3, 17},
                         {17, 3},    {64, 64},     {17, 33},    {5, 1, 7},     {8, 16, 32}, {3, 64, 17},
                         {64, 3, 9}, {2, 3, 4, 5}, {20, 9, 40}, {1, 200, 130}, {300, 2},    {2, 5000},
                         {40, 8},    {13, 4, 65},  {9, 100, 4}};

/// Compiled kernels agree with the interpreter, and groups without a reduction with blocks.
void expect_agreement(RandomGroup& random, bool has_functions) {
  const auto collector = std::make_shared<cpu::KernelCollector>(cpu::kernels_of_this_cpu());
  std::optional<cpu::PlacedKernel> placed = cpu::kernel_of(random.group(), jit::vector_bytes());
  if (!placed && random.group().reduced) return;  // over the last loop, or an operand lies across it
  ASSERT_TRUE(placed);
  SCOPED_TRACE(kernel::to_text(placed->kernel));
  const auto step = cpu::make_kernel_step(*placed, collector);
  ASSERT_TRUE(step);
  collector->compile();

  random.clear_outputs();
  random.run(*step, 1);
  ASSERT_TRUE(random.guards_hold());
  const auto compiled = random.outputs();
  random.clear_outputs();
  random.run(*step, 3);
  EXPECT_EQ(random.outputs(), compiled) << "bits depend on the threads";

  random.clear_outputs();
  std::vector<std::byte*> bases;
  for (const auto& place : placed->places) bases.push_back(random.bases()[place.buffer] + place.byte_offset);
  kernel::interpret(placed->kernel, bases.data(), 0, placed->kernel.tiles());
  const bool is_f32 = random.group().slots[0].dtype == DType::f32;
  const double tolerance = !has_functions ? 0 : is_f32 ? 1e-4 : 1e-12;
  EXPECT_EQ(random.difference(compiled, random.outputs(), tolerance), "") << "against the interpreter";

  if (random.group().reduced) return;
  random.clear_outputs();
  random.run(*cpu::make_block_step(random.group(), cpu::kernels_of_this_cpu()), 1);
  EXPECT_EQ(random.difference(compiled, random.outputs(), tolerance), "") << "against blocks";
}

void expect_agreement(const Shape& space, std::uint64_t seed, DType dtype, bool exact) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomGroup random(seed, space, dtype, exact);
  expect_agreement(random, !exact);
}

TEST_P(KernelEmitterTest, ExactGroupsAgree) {
  std::uint64_t seed = 1;
  for (const Shape& space : kSpaces)
    for (DType dtype : {DType::f32, DType::f64})
      for (int repetition = 0; repetition < 4; ++repetition) expect_agreement(space, seed++, dtype, true);
}

TEST_P(KernelEmitterTest, GroupsWithFunctionsAgree) {
  std::uint64_t seed = 1000;
  for (const Shape& space : kSpaces)
    for (DType dtype : {DType::f32, DType::f64}) expect_agreement(space, seed++, dtype, false);
}

/// The functions that are instructions have the bits of the block kernels.
TEST_P(KernelEmitterTest, InlineFunctionsEqualBlocksBitByBit) {
  for (DType dtype : {DType::f32, DType::f64})
    for (cpu::Opcode opcode :
         {cpu::Opcode::exp, cpu::Opcode::expm1, cpu::Opcode::log, cpu::Opcode::logistic, cpu::Opcode::tanh}) {
      RandomGroup random(9, {30, 700}, dtype, opcode);
      const auto collector = std::make_shared<cpu::KernelCollector>(cpu::kernels_of_this_cpu());
      const auto step = cpu::make_group_kernel_step(random.group(), collector, false);
      ASSERT_TRUE(step);
      collector->compile();
      random.clear_outputs();
      random.run(*step, 1);
      const auto compiled = random.outputs();
      random.clear_outputs();
      random.run(*cpu::make_block_step(random.group(), cpu::kernels_of_this_cpu()), 1);
      EXPECT_EQ(random.difference(compiled, random.outputs(), 0), "") << static_cast<int>(opcode);
    }
}

/// Reductions over axes before the last, fused with what computes their operands.
TEST_P(KernelEmitterTest, GroupsThatEndInAReductionAgree) {
  std::uint64_t seed = 5000;
  int kernels = 0;
  for (std::size_t i = 0; i < 4 * std::size(kSpaces); ++i) {
    const Shape& space = kSpaces[i % std::size(kSpaces)];
    for (DType dtype : {DType::f32, DType::f64})
      for (cpu::Reduction reduction : {cpu::Reduction::sum, cpu::Reduction::max, cpu::Reduction::min}) {
        RandomGroup random(seed++, space, dtype, reduction != cpu::Reduction::sum, reduction);
        kernels += cpu::kernel_of(random.group(), jit::vector_bytes()).has_value();
        expect_agreement(random, reduction == cpu::Reduction::sum);
      }
  }
  EXPECT_GE(kernels, 20);
}

/// Results that are written past the caches.
TEST_P(KernelEmitterTest, LargeGroupsAgreeWithBlocks) {
  const Shape space{2100, 4096};
  RandomGroup random(5, space, DType::f32, true);
  const auto collector = std::make_shared<cpu::KernelCollector>(cpu::kernels_of_this_cpu());
  const auto step = cpu::make_group_kernel_step(random.group(), collector, false);
  ASSERT_TRUE(step);
  collector->compile();
  random.clear_outputs();
  random.run(*step, 2);
  ASSERT_TRUE(random.guards_hold());
  const auto compiled = random.outputs();
  random.clear_outputs();
  random.run(*cpu::make_block_step(random.group(), cpu::kernels_of_this_cpu()), 2);
  EXPECT_EQ(random.difference(compiled, random.outputs(), 0), "");
}

/// Parts of a group compute together what the group computes.
TEST_P(KernelEmitterTest, IndependentPartsAreTheGroup) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    RandomGroup random(seed, {9, 40}, DType::f64, true);
    random.clear_outputs();
    random.run(*cpu::make_block_step(random.group(), cpu::kernels_of_this_cpu()), 1);
    const auto whole = random.outputs();
    random.clear_outputs();
    for (const cpu::MapGroup& part : cpu::independent_parts(random.group()))
      random.run(*cpu::make_block_step(part, cpu::kernels_of_this_cpu()), 1);
    EXPECT_EQ(random.difference(random.outputs(), whole, 0), "") << "seed " << seed;
  }
}

/// One function for equal kernels; kernels added later are compiled later.
TEST_P(KernelEmitterTest, EqualKernelsShareAFunction) {
  jit::KernelCompiler compiler(jit::Level::quick);
  const auto kernel_of = [](std::uint64_t seed, const Shape& space) {
    return cpu::kernel_of(RandomGroup(seed, space, DType::f32, true).group(), jit::vector_bytes())->kernel;
  };
  const kernel::Function* first = compiler.add(kernel_of(1, {8, 40}));
  EXPECT_EQ(compiler.add(kernel_of(1, {8, 40})), first);
  EXPECT_NE(compiler.add(kernel_of(1, {8, 41})), first);
  EXPECT_EQ(compiler.functions(), 2u);
  compiler.compile();
  EXPECT_NE(*first, nullptr);
  const kernel::Function before = *first, *later = compiler.add(kernel_of(2, {8, 40}));
  compiler.compile();
  EXPECT_NE(*later, nullptr);
  EXPECT_EQ(*first, before);
}

}  // namespace
}  // namespace loipe
