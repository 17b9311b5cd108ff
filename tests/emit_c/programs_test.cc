// SPDX-License-Identifier: Apache-2.0
// Random programs as C, and what is easily got wrong in it: names, constants, empty tensors, long
// functions.
#include <limits>

#include "../backends/random_program.h"
#include "backends/c/loops.h"
#include "backends/c/straight_line.h"
#include "backends/scalar/scalarize.h"
#include "compiled_sources.h"
#include "passes/expansion/expansion.h"
#include "passes/runner.h"
#include "random_rows.h"
#include "support/random_program.h"

namespace loipe {
namespace {

class EmittedPrograms : public WithCompiler {
 protected:
  void add_loops(const Program& program, std::vector<Tensor> arguments) {
    sources_.add(program, c::emit_loops(passes::expansion(program), sources_.names(program), {}));
    arguments_.push_back(std::move(arguments));
  }
  void add(const Program& program, std::vector<Tensor> arguments) {
    sources_.add(program);
    arguments_.push_back(std::move(arguments));
  }
  void expect_reference(double f64_error, double f32_error) {
    sources_.compile();
    for (std::size_t k = 0; k < sources_.size() && !HasFailure(); ++k) {
      SCOPED_TRACE("source " + std::to_string(k));
      sources_.expect_reference(k, arguments_[k], f64_error, f32_error);
    }
  }

  CompiledSources sources_{GetParam()};
  std::vector<std::vector<Tensor>> arguments_;
};
INSTANTIATE_TEST_SUITE_P(Compilers, EmittedPrograms, ::testing::Values("gcc", "clang-19"), compiler_name);

TEST_P(EmittedPrograms, StraightLineCodeIsTheProgram) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const DType dtype = seed % 3 ? DType::f64 : DType::f32;
    const Program program = testing::random_program(seed, {.dtype = dtype});
    if (!scalar::reasons_against(program).empty()) continue;
    sources_.add(program, c::emit_straight_line(scalar::scalarize(program), sources_.names(program), {}));
    arguments_.push_back(testing::random_arguments(program, seed));
  }
  EXPECT_GT(sources_.size(), 20u);
  expect_reference(1e-13, 1e-5);
}

TEST_P(EmittedPrograms, LoopsAreTheProgram) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomProgram random = random_program(seed, seed % 3 ? DType::f64 : DType::f32, 40);
    add_loops(seed % 2 ? random.program : run_passes(random.program), std::move(random.arguments));
  }
  expect_reference(1e-12, 1e-4);
}

TEST_P(EmittedPrograms, LoopsOverRowsAreTheProgram) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    RandomRows random(seed, seed % 3 ? DType::f64 : DType::f32);
    const Program program = random.make(20);
    add_loops(seed % 2 ? program : run_passes(program), random.arguments);
  }
  expect_reference(1e-11, 1e-3);
}

/// Keywords of C and C++, functions of libm, macros, names that become equal, and no names at all.
TEST_P(EmittedPrograms, AnyNamesWillDo) {
  Builder b("int");
  Value sum = b.scalar(1, DType::f64);
  std::vector<Tensor> arguments;
  for (const char* name : {"double", "class", "exp", "linux", "work", "a-b", "a_b", "_Bool", "*/", "1",
                           "function_0", "NAN", "x0", "loipe_1", "i0", "\xc3\xa9", "in.x"}) {
    sum = ops::add(b, ops::exp(b, sum), b.argument(name, {DType::f64, {}}));
    arguments.push_back(Tensor::scalar(-3.0));
  }
  const Program program = b.finish({sum});
  add_loops(program, arguments);
  add(program, arguments);
  expect_reference(1e-14, 0);
}

template <class T>
std::vector<T> extremes() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) return {Limits::min(), Limits::max(), 0, -1, Limits::min() + 1};
  else
    return {Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            T(-0.0),
            T(0.0),
            Limits::max(),
            Limits::lowest(),
            Limits::min(),
            T(0.1)};
}

/// Constants as outputs, as tables and, one by one, as literals; times 1, plus -0, and 1 over them.
template <class T>
Program program_of_constants(const std::vector<T>& numbers) {
  Builder b("constants");
  const Shape shape{std::ssize(numbers)};
  const Value x = b.argument("x", {dtype_of<T>(), shape});
  const Value table = b.constant(Tensor::of<T>(shape, std::span<const T>(numbers)));
  std::vector<Value> outputs{table,
                             x,
                             ops::mul(b, x, table),
                             ops::add(b, x, table),
                             ops::neg(b, table),
                             ops::max(b, table, x),
                             ops::abs(b, table),
                             ops::div(b, x, table),
                             ops::sub(b, table, x)};
  for (T number : numbers) {
    const Value literal = b.constant(Tensor::scalar(number));
    for (Value y : {literal, ops::mul(b, x, literal), ops::sub(b, x, literal), ops::min(b, literal, x),
                    ops::neg(b, ops::mul(b, literal, x))})
      outputs.push_back(y);
  }
  return b.finish(outputs);
}

/// Every sign of zero too.
template <class T>
void expect_bits(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k)
    for (std::int64_t i = 0; i < expected[k].element_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const T a = actual[k].elements<T>()[at], e = expected[k].elements<T>()[at];
      const bool is_same =
          a == e && std::signbit(static_cast<double>(a)) == std::signbit(static_cast<double>(e));
      EXPECT_TRUE(is_same || (a != a && e != e))
          << "output " << k << "[" << i << "] is " << a << " for " << e;
    }
}

TEST_P(EmittedPrograms, ConstantsAreExact) {
  const Program programs[] = {
      program_of_constants(extremes<double>()), program_of_constants(extremes<float>()),
      program_of_constants(extremes<std::int32_t>()), program_of_constants(extremes<std::int64_t>())};
  for (const Program& program : programs) {
    Tensor x(program.type(program.arguments()[0]));
    for (std::int64_t i = 0; i < x.element_count(); ++i) x.set(i, static_cast<double>(2 - i));
    add_loops(program, {x});
  }
  sources_.compile();
  const auto run = [&](std::size_t k) { return sources_.run(k, arguments_[k]); };
  expect_bits<double>(run(0), evaluate(programs[0], arguments_[0]));
  expect_bits<float>(run(1), evaluate(programs[1], arguments_[1]));
  expect_bits<std::int32_t>(run(2), evaluate(programs[2], arguments_[2]));
  expect_bits<std::int64_t>(run(3), evaluate(programs[3], arguments_[3]));
}

/// Straight-line code folds constants, and has no sign of zero to keep.
TEST_P(EmittedPrograms, ConstantsAreExactInStraightLines) {
  for (int i = 0; i < 2; ++i) {
    const Program program =
        i ? program_of_constants(extremes<float>()) : program_of_constants(extremes<double>());
    Tensor x(program.type(program.arguments()[0]));
    for (std::int64_t e = 0; e < x.element_count(); ++e) x.set(e, static_cast<double>(2 - e));
    ASSERT_TRUE(scalar::reasons_against(program).empty());
    add(program, {x});
  }
  expect_reference(0, 0);
}

TEST_P(EmittedPrograms, NothingIsWrittenOfEmptyTensors) {
  for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 2}}) {
    Builder b("empty");
    const Value x = b.argument("x", {DType::f64, shape}), y = b.argument("y", {DType::f64, {}});
    const std::int64_t last = std::ssize(shape) - 1;
    const Value sum = ops::reduce_sum(b, ops::mul(b, x, y), {last}), most = ops::reduce_max(b, x, {last});
    const Value wide =
        ops::pad(b, x, y, Integers(shape.size(), 1), Integers(shape.size(), 1), Integers(shape.size(), 0));
    const Value both[] = {x, wide};
    std::vector<Value> outputs{x,
                               sum,
                               most,
                               wide,
                               ops::cumsum(b, x, false),
                               ops::exp(b, x),
                               b.emit("argsort", {x}, {{"descending", std::int64_t{0}}})};
    if (shape.size() == 1) outputs.push_back(ops::concatenate(b, both, 0));
    if (shape.size() == 2) outputs.push_back(ops::dot_general(b, x, x, {last}, {last}));
    const Program program = b.finish(outputs);
    add_loops(program, {Tensor(TensorType{DType::f64, shape}), Tensor::scalar(2.0)});
    add(program, {Tensor(TensorType{DType::f64, shape}), Tensor::scalar(2.0)});
  }
  expect_reference(0, 0);
}

TEST_P(EmittedPrograms, LongProgramsAreSeveralFunctions) {
  Builder b("chain");
  const Value x = b.argument("x", {DType::f64, {2}});
  Value y = x;
  std::vector<Value> outputs;
  for (int i = 0; i < 1500; ++i) {
    y = i % 2 ? ops::add(b, y, x) : ops::mul(b, 0.25, y);
    if (i % 100 == 0) outputs.push_back(y);
  }
  outputs.push_back(y);
  const Program program = b.finish(outputs);
  const std::vector<Tensor> arguments{Tensor::of<double>({2}, {1.0, -2.0})};
  const c::SourceNames names = sources_.names(program);
  EXPECT_NE(c::emit_c(program, names, {}).source.find("function_0_2("), std::string::npos);
  EXPECT_NE(c::emit_loops(program, names, {}).source.find("function_0_1("), std::string::npos);
  add(program, arguments);
  add_loops(program, arguments);
  expect_reference(1e-15, 0);
}

}  // namespace
}  // namespace loipe
