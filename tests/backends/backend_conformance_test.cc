// SPDX-License-Identifier: Apache-2.0
// Law: every back end agrees with the interpreter on every op, and writes nothing
// outside its outputs.
#include <thread>

#include "backends/backend_testing.h"
#include "backends/random_program.h"

namespace loipe {
namespace {

class EveryLevel : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Simd, EveryLevel, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

void expect_op_agrees(const OpDef& op, const Sample& sample) {
  const Program program = one_node_program(op, sample);
  const std::vector<Tensor> expected = evaluate(program, sample.operands);
  const bool is_exact = op.tolerance.value == Tolerance::exact;
  for (int threads : {1, 2}) {
    const auto executable = find_backend("jit").compile(program, {.threads = threads});
    expect_agreement(run_guarded(*executable, sample.operands), expected, is_exact ? 0 : 1e-14,
                     is_exact ? 0 : 1e-6);
  }
}

TEST_P(EveryLevel, OpsAgreeWithTheReference) {
  for (const OpDef* op : all_ops()) {
    Rng rng(17);
    std::vector<Sample> samples = op->samples.value(rng);
    if (op->special_points)
      for (Sample& sample : op->special_points(rng)) samples.push_back(std::move(sample));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      SCOPED_TRACE(std::string(op->name.value) + ", sample " + std::to_string(i));
      expect_op_agrees(*op, samples[i]);
      expect_op_agrees(*op, in_single_precision(samples[i]));
    }
  }
}

/// Long enough for whole vectors, blocks and tasks, with a rest.
TEST_P(EveryLevel, ElementwiseOpsAgreeOnLongOperands) {
  constexpr std::int64_t kLength = 20003;
  for (const OpDef* op : all_ops()) {
    Rng rng(18);
    for (Sample& sample : op->samples.value(rng)) {
      if (!is_elementwise(*op, sample) || sample.attributes.has("shape")) continue;
      repeat_operands(sample, {kLength});
      SCOPED_TRACE(std::string(op->name.value));
      expect_op_agrees(*op, sample);
      expect_op_agrees(*op, in_single_precision(sample));
    }
  }
}

TEST_P(EveryLevel, RandomProgramsAgreeWithTheReference) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    for (DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(to_string(dtype)));
      const RandomProgram random = random_program(seed, dtype, 40);
      const std::vector<Tensor> expected = evaluate(random.program, random.arguments);
      const auto one = find_backend("jit").compile(random.program, {.threads = 1});
      const auto two = find_backend("jit").compile(random.program, {.threads = 2});
      const std::vector<Tensor> results = run_guarded(*one, random.arguments);
      expect_agreement(results, expected, 1e-12, 1e-4);
      EXPECT_TRUE(run_guarded(*one, random.arguments) == results) << "a repetition differs";
      EXPECT_TRUE(run_guarded(*two, random.arguments) == results) << "two threads differ";
      if (HasFailure()) return;
    }
  }
}

TEST(BackendTest, ConcurrentRunsDoNotDisturbEachOther) {
  const RandomProgram random = random_program(4711, DType::f64, 60);
  for (const Backend* backend : all_backends()) {
    const auto executable = backend->compile(random.program, {.threads = 2});
    std::vector<std::vector<Tensor>> arguments(4, random.arguments), results(4);
    for (std::size_t t = 0; t < arguments.size(); ++t)
      for (Tensor& argument : arguments[t])
        if (is_floating(argument.dtype()) && argument.element_count() > 0)
          argument.set(0, 0.125 * static_cast<double>(t));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < arguments.size(); ++t)
      threads.emplace_back([&, t] {
        for (int repetition = 0; repetition < 20; ++repetition) results[t] = executable->run(arguments[t]);
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 0; t < arguments.size(); ++t)
      EXPECT_TRUE(results[t] == executable->run(arguments[t])) << backend->name() << ", thread " << t;
  }
}

Program square_program() {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {100, 100}});
  return b.finish({b.emit("tanh", {b.emit("einsum", {x, x}, {{"spec", std::string("ab,bc->ac")}})})});
}

TEST(BackendTest, MemoryLimitIsCheckedBeforeTheRun) {
  for (const Backend* backend : all_backends()) {
    const std::size_t needed = backend->compile(square_program())->peak_bytes();
    EXPECT_GE(needed, 2u * 100 * 100 * 8);
    EXPECT_NO_THROW(backend->compile(square_program(), {.memory_limit = needed}));
    try {
      backend->compile(square_program(), {.memory_limit = 1});
      ADD_FAILURE() << backend->name() << " ignores the memory limit";
    } catch (const ResourceError& error) {
      // The number that it asks for is enough, and one less is not.
      const std::string text = error.what();
      const std::size_t number = text.rfind(' ', text.find(" bytes") - 1) + 1;
      const std::size_t least = std::stoull(text.substr(number));
      EXPECT_LE(least, needed) << text;
      EXPECT_LE(backend->compile(square_program(), {.memory_limit = least})->peak_bytes(), least) << text;
      EXPECT_THROW(backend->compile(square_program(), {.memory_limit = least - 1}), ResourceError) << text;
    }
  }
}

template <class F>
std::string user_error_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BackendTest, MistakesAreNamed) {
  EXPECT_NE(user_error_of([] { find_backend("jitt"); }).find("did you mean 'jit'"), std::string::npos);
  EXPECT_NE(user_error_of([] {
              find_backend("jit").compile(square_program(), {.threads = -1});
            }).find("threads is -1"),
            std::string::npos);
  const auto executable = find_backend("jit").compile(square_program());
  std::vector<std::byte> memory(80000);
  const std::vector<ConstBytes> good{memory}, short_argument{std::span(memory).first(8)};
  std::vector<std::byte> result(80000);
  const std::vector<Bytes> good_output{result}, short_output{std::span(result).first(8)};
  EXPECT_NE(user_error_of([&] { executable->run({}, good_output); }).find("1 arguments, got 0"),
            std::string::npos);
  EXPECT_NE(user_error_of([&] {
              executable->run(short_argument, good_output);
            }).find("argument 'x' is f64[100,100] of 80000 bytes, got a span of 8 bytes"),
            std::string::npos);
  EXPECT_NE(user_error_of([&] { executable->run(good, short_output); }).find("output 0 is f64[100,100]"),
            std::string::npos);
  const ForcedSimd simd("avx1024");
  EXPECT_NE(user_error_of([] { find_backend("jit").compile(square_program()); }).find("LOIPE_SIMD=avx1024"),
            std::string::npos);
}

}  // namespace
}  // namespace loipe
