// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/batch_kernel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "backends/scalar/scalarize.h"
#include "ir/builder.h"
#include "ir/interpreter.h"
#include "ir/parser.h"
#include "support/dense_jacobian.h"
#include "support/random_program.h"

namespace loipe {
namespace {

using testing::relative_deviation;

/// Rows of a batch next to each other, with guard bytes behind.
class BatchData {
 public:
  BatchData(const std::vector<TensorType>& types, std::int64_t batch) : types_(types) {
    for (const TensorType& type : types)
      bytes_.emplace_back(type.byte_size() * static_cast<std::size_t>(batch) + kGuard, std::byte{0xa5});
  }
  void set(std::size_t k, std::int64_t example, const Tensor& value) {
    std::ranges::copy(value.bytes(),
                      bytes_[k].begin() + static_cast<std::ptrdiff_t>(value.bytes().size()) * example);
  }
  Tensor get(std::size_t k, std::int64_t example) const {
    Tensor value(types_[k]);
    const auto size = static_cast<std::ptrdiff_t>(value.bytes().size());
    std::copy_n(bytes_[k].begin() + size * example, size, value.bytes().begin());
    return value;
  }
  std::vector<std::span<const std::byte>> read() const {
    std::vector<std::span<const std::byte>> spans;
    for (const auto& b : bytes_) spans.emplace_back(b.data(), b.size() - kGuard);
    return spans;
  }
  std::vector<std::span<std::byte>> write() {
    std::vector<std::span<std::byte>> spans;
    for (auto& b : bytes_) spans.emplace_back(b.data(), b.size() - kGuard);
    return spans;
  }
  bool guards_hold() const {
    return std::ranges::all_of(bytes_, [](const auto& b) {
      return std::all_of(b.end() - kGuard, b.end(), [](std::byte x) { return x == std::byte{0xa5}; });
    });
  }
  bool operator==(const BatchData& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr std::ptrdiff_t kGuard = 64;
  std::vector<TensorType> types_;
  std::vector<std::vector<std::byte>> bytes_;
};

std::vector<TensorType> types_of(const Program& program, std::span<const Value> values) {
  std::vector<TensorType> types;
  for (Value v : values) types.push_back(program.type(v));
  return types;
}

/// Every example of a batch equals the reference interpreter; guards hold; the bits do
/// not depend on the number of threads.
void expect_batch_agrees(const Program& program, std::int64_t batch, double tolerance,
                         const jit::BatchOptions& options) {
  const jit::BatchKernel kernel(program, options);
  BatchData in(types_of(program, program.arguments()), batch);
  std::vector<std::vector<Tensor>> examples;
  for (std::int64_t b = 0; b < batch; ++b) {
    examples.push_back(testing::random_arguments(program, 77 + static_cast<std::uint64_t>(b)));
    for (std::size_t k = 0; k < examples.back().size(); ++k) in.set(k, b, examples.back()[k]);
  }
  BatchData out(types_of(program, program.outputs()), batch);
  const std::vector<bool> shared(program.arguments().size(), false);
  const auto arguments = in.read();
  const auto results = out.write();
  const BatchLayouts dense{.argument_stride = batch, .result_stride = batch};
  kernel.run({batch, arguments, shared, results, dense});
  EXPECT_TRUE(out.guards_hold());
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::vector<Tensor> expected = evaluate(program, examples[static_cast<std::size_t>(b)]);
    for (std::size_t k = 0; k < expected.size(); ++k)
      ASSERT_LT(relative_deviation(out.get(k, b), expected[k], 1.0), tolerance)
          << "example " << b << ", output " << k;
  }
  jit::BatchOptions two = options;
  two.threads = 2;
  BatchData again(types_of(program, program.outputs()), batch);
  const auto again_results = again.write();
  jit::BatchKernel(program, two).run({batch, arguments, shared, again_results, dense});
  EXPECT_TRUE(again == out);
}

TEST(BatchKernel, AgreesWithTheReferenceOnRandomPrograms) {
  int compiled = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = testing::random_program(seed);
    if (!scalar::reasons_against(program).empty()) continue;
    ++compiled;
    expect_batch_agrees(program, 11, 1e-12, {.level = seed % 2 ? jit::Level::quick : jit::Level::full});
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(compiled, 30);
}

const char* const kFunctions = R"(program functions(%x: TYPE[], %y: TYPE[]) {
  %1 = abs(%x) : TYPE[]
  %2 = exp(%x) : TYPE[]
  %3 = log(%1) : TYPE[]
  %4 = sin(%y) : TYPE[]
  %5 = atan2(%x, %y) : TYPE[]
  %6 = tanh(%y) : TYPE[]
  %7 = pow(%1, %y) : TYPE[]
  %8 = erf(%x) : TYPE[]
  %9 = sqrt(%1) : TYPE[]
  %10 = lt(%x, %y) : bool[]
  %11 = select(%10, %7, %8) : TYPE[]
  %12 = logistic(%x) : TYPE[]
  %13 = sign(%y) : TYPE[]
  %14 = integer_pow(%x) {y=-3} : TYPE[]
  %15 = max(%x, %y) : TYPE[]
  return %2, %3, %4, %5, %6, %11, %9, %12, %13, %14, %15
})";

Program functions(const std::string& dtype) {
  std::string text = kFunctions;
  for (std::size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, dtype);
  return program_from_text(text);
}

TEST(BatchKernel, VectorFunctionsAreAccurate) {
  expect_batch_agrees(functions("f64"), 37, 1e-14, {});
  expect_batch_agrees(functions("f32"), 37, 2e-6, {});
}

TEST(BatchKernel, NarrowerVectorsGiveTheSameNumbersWithinRounding) {
  for (const char* simd : {"avx2", "baseline"}) {
    ::setenv("LOIPE_SIMD", simd, 1);
    expect_batch_agrees(functions("f64"), 9, 1e-14, {});
    expect_batch_agrees(functions("f32"), 9, 2e-6, {});
    ::unsetenv("LOIPE_SIMD");
  }
  expect_batch_agrees(functions("f64"), 5, 1e-14, {.lanes = 1});
}

TEST(BatchKernel, SharedArgumentsAreReadByAllExamples) {
  const Program program =
      program_from_text("program p(%x: f64[2], %w: f64[2]) {\n  %1 = mul(%x, %w) : f64[2]\n  return %1\n}\n");
  const jit::BatchKernel kernel(program, {});
  const Tensor w = Tensor::of<double>({2}, {3.0, 5.0});
  const Tensor x = Tensor::of<double>({3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  Tensor out(x.type());
  const std::span<const std::byte> in[] = {x.bytes(), w.bytes()};
  const std::span<std::byte> to[] = {out.bytes()};
  kernel.run({3, in, {false, true}, to, {.argument_stride = 3, .result_stride = 3}});
  EXPECT_EQ(out, Tensor::of<double>({3, 2}, {3.0, 10.0, 9.0, 20.0, 15.0, 30.0}));
}

TEST(BatchKernel, LongProgramsAreCutIntoFunctions) {
  Builder builder("chain");
  const Value x = builder.argument("x", {DType::f64, {}});
  std::vector<Value> kept{x};
  Value y = x;
  for (int i = 0; i < 9000; ++i) {
    y = i % 3 ? builder.emit("add", {y, kept[static_cast<std::size_t>(i) / 7 % kept.size()]})
              : builder.emit("mul", {y, builder.scalar(0.5, DType::f64)});
    if (i % 500 == 0) kept.push_back(y);  // values that cross several cuts
  }
  const Program program = builder.finish({y, kept.back()});
  expect_batch_agrees(program, 10, 1e-12, {.level = jit::Level::quick});
}

TEST(BatchKernel, RefusesWhatHasNoScalarForm) {
  const Program program = program_from_text(
      "program p(%x: f64[2], %i: i64[2]) {\n  %1 = gather(%x, %i) {extents=[2], from=\"#1[a]\"} : f64[2]\n  "
      "return %1\n}\n");
  EXPECT_THROW(jit::BatchKernel(program, {}), Unsupported);
  // 7/2 is 3 among integers: scalar code, which is floating, must not claim 3.5.
  const Program integers = program_from_text(
      "program p(%x: f64[]) {\n  %c1 = constant {value=i64[](7)} : i64[]\n  %c2 = constant {value=i64[](2)} "
      ": i64[]\n"
      "  %1 = div(%c1, %c2) : i64[]\n  %2 = convert_element_type(%1) {dtype=f64} : f64[]\n"
      "  %3 = mul(%x, %2) : f64[]\n  return %3\n}\n");
  EXPECT_THROW(jit::BatchKernel(integers, {}), Unsupported);
}

/// A cache of its own for the time of a test.
class OwnCache {
 public:
  OwnCache()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("loipe_kernels_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    if (const char* text = std::getenv("LOIPE_CACHE_DIR")) before_ = text;
    ::setenv("LOIPE_CACHE_DIR", folder_.c_str(), 1);
  }
  ~OwnCache() {
    if (before_) ::setenv("LOIPE_CACHE_DIR", before_->c_str(), 1);
    else ::unsetenv("LOIPE_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::vector<std::filesystem::path> files() const {
    return {std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()};
  }

 private:
  std::filesystem::path folder_;
  std::optional<std::string> before_;
};

TEST(BatchKernel, CodeComesFromTheCache) {
  const OwnCache cache;
  expect_batch_agrees(functions("f64"), 9, 1e-14, {});
  ASSERT_EQ(cache.files().size(), 1u);
  const auto written = std::filesystem::last_write_time(cache.files()[0]);
  std::filesystem::last_write_time(cache.files()[0], written - std::chrono::hours(1));
  expect_batch_agrees(functions("f64"), 9, 1e-14, {});
  ASSERT_EQ(cache.files().size(), 1u);
  EXPECT_GE(std::filesystem::last_write_time(cache.files()[0]), written);  // it was used
  // Whatever decides the code is in the key.
  expect_batch_agrees(functions("f32"), 9, 2e-6, {});
  EXPECT_EQ(cache.files().size(), 2u);
  expect_batch_agrees(functions("f64"), 9, 1e-14, {.level = jit::Level::quick});
  EXPECT_EQ(cache.files().size(), 3u);
  ::setenv("LOIPE_SIMD", "baseline", 1);
  expect_batch_agrees(functions("f64"), 9, 1e-14, {});
  ::unsetenv("LOIPE_SIMD");
  EXPECT_EQ(cache.files().size(), 4u);
  expect_batch_agrees(functions("f64"), 9, 1e-14, {.use_code_cache = false, .lanes = 1});
  EXPECT_EQ(cache.files().size(), 4u);
}

TEST(BatchKernel, DamagedCodeIsCompiledAgain) {
  const OwnCache cache;
  expect_batch_agrees(functions("f64"), 9, 1e-14, {});
  ASSERT_EQ(cache.files().size(), 1u);
  const auto size = std::filesystem::file_size(cache.files()[0]);
  std::filesystem::resize_file(cache.files()[0], size / 2);
  expect_batch_agrees(functions("f64"), 9, 1e-14, {});
  EXPECT_EQ(std::filesystem::file_size(cache.files()[0]), size);
}

}  // namespace
}  // namespace loipe
