// SPDX-License-Identifier: Apache-2.0
// Tiles: the same bits whatever their size, and less memory.
#include "backends/backend_testing.h"
#include "backends/cpu/executable.h"
#include "backends/cpu/lowering/lowering.h"
#include "backends/cpu/simd_level.h"
#include "backends/random_program.h"
#include "driver/pipeline.h"
#include "orders/order.h"
#include "tasks/inputs.h"
#include "tasks/task.h"

namespace loipe {
namespace {

constexpr cpu::TilingOptions kNoTiles{std::int64_t{1} << 40, false};

std::vector<Tensor> run_in_tiles(const Program& program, std::span<const Tensor> arguments,
                                 const cpu::TilingOptions& tiling, int threads = 1) {
  const cpu::CpuExecutable executable(program, cpu::lower(program, cpu::kernels_of_this_cpu(), {tiling}),
                                      threads);
  return run_guarded(executable, std::vector<Tensor>(arguments.begin(), arguments.end()));
}

void expect_same_bits(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(actual[i].bytes(), expected[i].bytes()))
        << "output " << i << " " << to_string(expected[i].type());
}

class Tiles : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Simd, Tiles, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

TEST_P(Tiles, RandomProgramsHaveTheSameBits) {
  int regions = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    for (DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(to_string(dtype)));
      const RandomProgram random = random_program(seed, dtype, 60);
      const std::vector<Tensor> whole = run_in_tiles(random.program, random.arguments, kNoTiles);
      for (std::int64_t tile_bytes : {64, 1024, 8192})
        for (bool is_parallel : {false, true}) {
          const cpu::TilingOptions tiling{tile_bytes, is_parallel};
          regions += static_cast<int>(cpu::find_regions(random.program, tiling).regions.size());
          expect_same_bits(run_in_tiles(random.program, random.arguments, tiling, is_parallel ? 3 : 1),
                           whole);
        }
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(regions, 160) << "the random programs hardly exercise tiling";
}

/// The op between elementwise ones, which leave numbers as they are: a region needs
/// values inside that it hides. It also needs a product or a sum, so elementwise ops
/// get one behind them.
Program surrounded_op(const OpDef& op, const Sample& sample, bool has_product) {
  Builder b;
  const auto twice_negated = [&](Value v) {
    const DType dtype = b.type(v).dtype;
    if (!is_floating(dtype) && dtype != DType::boolean) return v;
    const char* negation = dtype == DType::boolean ? "not" : "neg";
    return b.emit(negation, {b.emit(negation, {v})});
  };
  std::vector<Value> operands;
  for (std::size_t i = 0; i < sample.operands.size(); ++i)
    operands.push_back(b.argument("x" + std::to_string(i), sample.operands[i].type()));
  for (Value& operand : operands) operand = twice_negated(operand);
  Value result = b.emit(op, operands, sample.attributes);
  if (has_product) {
    const DType dtype = is_floating(b.type(result).dtype) ? b.type(result).dtype : DType::f64;
    const Value factor = b.constant(Tensor::of<double>({5}, {1, -2, 3, 4, 5}).converted(dtype));
    if (b.type(result).dtype != dtype) result = b.emit("convert_element_type", {result}, {{"dtype", dtype}});
    result = b.emit("einsum", {result, factor}, {{"spec", std::string("a,b->ab")}});
  }
  return b.finish({twice_negated(result)});
}

TEST_P(Tiles, OpsHaveTheSameBits) {
  constexpr cpu::TilingOptions kSmall{64, true};
  int tiled = 0;
  const auto check = [&](const OpDef& op, const Sample& sample, bool has_product) {
    SCOPED_TRACE(std::string(op.name.value));
    const Program program = surrounded_op(op, sample, has_product);
    tiled += cpu::find_regions(program, kSmall).regions.empty() ? 0 : 1;
    const std::vector<Tensor> whole = run_in_tiles(program, sample.operands, kNoTiles);
    for (int threads : {1, 2})
      expect_same_bits(run_in_tiles(program, sample.operands, kSmall, threads), whole);
  };
  for (const OpDef* op : all_ops()) {
    Rng rng(19);
    for (Sample& sample : op->samples.value(rng)) {
      check(*op, sample, false);
      check(*op, in_single_precision(sample), false);
      if (!is_elementwise(*op, sample) || sample.attributes.has("shape")) continue;
      repeat_operands(sample, {595});
      check(*op, sample, true);
      check(*op, in_single_precision(sample), true);
    }
  }
  EXPECT_GT(tiled, 150) << "the samples hardly exercise tiling";
}

/// A sum reads through a transpose of a value that a region computes.
TEST(Tiles, AViewOfAMemberIsReadAsWithoutTiles) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {64, 5, 5}});
  const Value size = b.emit("abs", {x});
  const Value c = b.emit("add", {b.emit("sin", {size}), size});
  const Value turned = b.emit("transpose", {c}, {{"permutation", Integers{0, 2, 1}}});
  const Value sum = b.emit("reduce_sum", {turned}, {{"axes", Integers{0, 1}}});
  const Value rows = b.emit("reduce_sum", {turned}, {{"axes", Integers{2}}});
  const Program program = b.finish({sum, rows});
  Tensor argument(TensorType{DType::f64, {64, 5, 5}});
  Rng rng(5);
  for (std::int64_t i = 0; i < argument.element_count(); ++i) argument.set(i, rng.normal());
  const std::vector<Tensor> whole = run_in_tiles(program, {&argument, 1}, kNoTiles);
  for (std::int64_t tile_bytes : {64, 512, 4096, 32768})
    for (bool is_parallel : {false, true})
      expect_same_bits(run_in_tiles(program, {&argument, 1}, {tile_bytes, is_parallel}), whole);
}

Program jacobian_program(const std::string& task, std::int64_t scale, const std::string& order, DType dtype) {
  const Task& t = find_task(task);
  const Program primal = t.build({.scale = scale, .batch = 1, .dtype = dtype});
  CompileOptions options;
  options.request.order = resolve_order(order, primal, t.name);
  options.request.wrt = floating_arguments(primal);
  return accumulate_and_optimise(primal, options).optimised;
}

class TiledJacobian : public testing::TestWithParam<std::tuple<std::string, int>> {};
INSTANTIATE_TEST_SUITE_P(Orders, TiledJacobian,
                         testing::Combine(testing::Values("reverse", "alphagrad", "forward",
                                                          "markowitz-published"),
                                          testing::Values(2, 4)));

/// The number that a refusal names.
std::size_t least_bytes(const Backend& backend, const Program& program) {
  try {
    backend.compile(program, {.threads = 2, .memory_limit = 1});
  } catch (const ResourceError& error) {
    const std::string text = error.what();
    return std::stoull(text.substr(text.rfind(' ', text.find(" bytes") - 1) + 1));
  }
  ADD_FAILURE() << "a limit of one byte was not refused";
  return 0;
}

TEST_P(TiledJacobian, EveryMemoryLimitGivesTheSameBits) {
  const auto& [order, scale] = GetParam();
  const TaskOptions task_options{.scale = scale, .batch = 1, .dtype = DType::f32};
  const Program program = jacobian_program("Encoder", scale, order, DType::f32);
  const std::vector<Tensor> inputs = task_inputs(find_task("Encoder"), task_options, InputKind::rich, 3);
  const std::vector<Tensor> whole = run_in_tiles(program, inputs, kNoTiles);
  const cpu::CpuExecutable untiled(program, cpu::lower(program, cpu::kernels_of_this_cpu(), {kNoTiles}), 2);
  const Backend& jit = find_backend("jit");
  const std::size_t least = least_bytes(jit, program), most = untiled.peak_bytes();
  ASSERT_LE(least, most);
  // From a limit that needs no tiles to the one that all tiles just meet.
  constexpr std::size_t kSteps = 8;
  for (std::size_t step = 0; step <= kSteps; ++step) {
    const std::size_t limit = most - (most - least) * step / kSteps;
    SCOPED_TRACE("limit " + std::to_string(limit));
    const auto executable = jit.compile(program, {.threads = 2, .memory_limit = limit});
    EXPECT_LE(executable->peak_bytes(), limit);
    expect_same_bits(run_guarded(*executable, inputs), whole);
  }
  EXPECT_THROW(jit.compile(program, {.threads = 2, .memory_limit = least - 1}), ResourceError);
  if (order == "forward" && scale == 4) {
    EXPECT_LT(least, most / 2);
  }
}

}  // namespace
}  // namespace loipe
