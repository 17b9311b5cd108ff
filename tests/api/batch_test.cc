// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "base/rng.h"

namespace loipe {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Arguments of 1, 3, 6 and 12 elements per example; s is shared. Structural zeros and
/// constants among the results.
const auto kSmall = [](auto a, auto x, auto M, auto N, auto s) {
  auto y = matmul(M, x) * s;
  return std::tuple(y / a, sin(x) * a, sum(N * N), exp(a) * s);
};

std::vector<Argument> small_arguments(DType dtype) {
  return {{"a", {dtype, {}}},
          {"x", {dtype, {3}}},
          {"M", {dtype, {2, 3}}},
          {"N", {dtype, {12}}},
          {"s", {dtype, {}}}};
}

/// A program that is too large for vector code over examples.
const auto kLarge = [](auto x, auto W) { return tanh(matmul(W, x)); };

template <class T>
Jacobian small_jacobian(JacobianOptions options) {
  options.shared = {"s"};
  return jacobian_of_function(detail::pack_function<5>(kSmall), small_arguments(dtype_of<T>()), options);
}

/// Arguments and results of a batch in one layout, filled from examples that do not
/// depend on how many there are.
template <class T>
struct Data {
  std::vector<std::vector<T>> arguments, outputs, blocks;
  BatchLayouts layouts;
  std::int64_t examples;

  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  Data(const Jacobian& jacobian, std::int64_t batch, BatchLayout in, BatchLayout out, std::int64_t pad)
      : layouts{in, out, in == BatchLayout::structure_of_arrays ? batch + pad : 0,
                out == BatchLayout::structure_of_arrays ? batch + pad : 0},
        examples(batch) {
    const std::int64_t in_stride = layouts.argument_stride, out_stride = layouts.result_stride;
    for (std::size_t k = 0; k < jacobian.argument_count(); ++k) {
      const std::int64_t n = jacobian.argument_type(k).element_count();
      if (jacobian.is_shared(k)) {
        arguments.emplace_back(size(n), T(1.25));
        continue;
      }
      arguments.emplace_back(size(n * std::max(batch, in_stride)), T(-77));
      for (std::int64_t b = 0; b < batch; ++b) {
        Rng rng(static_cast<std::uint64_t>(1000 * b) + k);
        for (std::int64_t e = 0; e < n; ++e)
          arguments.back()[place(in_stride, n, e, b)] = T(rng.uniform(0.3, 1.7));
      }
    }
    for (std::size_t i = 0; i < jacobian.output_count(); ++i)
      outputs.emplace_back(size(jacobian.output_type(i).element_count() * std::max(batch, out_stride)),
                           T(-77));
    for (std::size_t i = 0; i < jacobian.output_count(); ++i)
      for (std::size_t k = 0; k < jacobian.wrt().size(); ++k)
        blocks.emplace_back(size(jacobian.block_type(i, k).element_count() * std::max(batch, out_stride)),
                            T(-77));
  }

  static std::size_t place(std::int64_t stride, std::int64_t n, std::int64_t e, std::int64_t b) {
    return size(stride > 0 ? e * stride + b : b * n + e);
  }

  void run(const Jacobian& jacobian) {
    const std::vector<std::span<const T>> in(arguments.begin(), arguments.end());
    const std::vector<std::span<T>> out(outputs.begin(), outputs.end()), jac(blocks.begin(), blocks.end());
    jacobian.run_batch<T>(examples, in, out, jac, layouts);
  }

  /// Outputs and blocks of one example, one after the other.
  std::vector<T> example(const Jacobian& jacobian, std::int64_t b) const {
    std::vector<T> all;
    const auto append = [&](const std::vector<T>& data, std::int64_t n) {
      for (std::int64_t e = 0; e < n; ++e) all.push_back(data[place(layouts.result_stride, n, e, b)]);
    };
    for (std::size_t i = 0; i < outputs.size(); ++i)
      append(outputs[i], jacobian.output_type(i).element_count());
    const std::size_t wrt = jacobian.wrt().size();
    for (std::size_t i = 0; i < blocks.size(); ++i)
      append(blocks[i], jacobian.block_type(i / wrt, i % wrt).element_count());
    return all;
  }

  /// What no example may touch: the ends of padded rows.
  bool padding_is_untouched(const Jacobian& jacobian) const {
    if (layouts.result_stride == 0) return true;
    const auto is_untouched = [&](const std::vector<T>& data, std::int64_t n) {
      for (std::int64_t e = 0; e < n; ++e)
        for (std::int64_t b = examples; b < layouts.result_stride; ++b)
          if (data[size(e * layouts.result_stride + b)] != T(-77)) return false;
      return true;
    };
    const std::size_t wrt = jacobian.wrt().size();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!is_untouched(outputs[i], jacobian.output_type(i).element_count())) return false;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (!is_untouched(blocks[i], jacobian.block_type(i / wrt, i % wrt).element_count())) return false;
    return true;
  }
};

constexpr BatchLayout kStructures = BatchLayout::array_of_structures;
constexpr BatchLayout kArrays = BatchLayout::structure_of_arrays;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Bits depend on nothing but the example: not on its neighbours, the layout, the threads.
template <class T>
void expect_bits_of_examples_alone(const std::function<Jacobian(JacobianOptions)>& compile,
                                   std::int64_t most) {
  const Jacobian one = compile({.threads = 1, .batch = most}), two = compile({.threads = 2, .batch = 2});
  Data<T> all(one, most, kStructures, kStructures, 0);
  all.run(one);
  for (std::int64_t batch : {std::int64_t{1}, std::int64_t{5}, std::int64_t{16}, most})
    for (BatchLayout in : {kStructures, kArrays})
      for (BatchLayout out : {kStructures, kArrays}) {
        Data<T> data(two, batch, in, out, batch % 2 * 3);
        data.run(two);
        for (std::int64_t b = 0; b < batch; ++b)
          ASSERT_TRUE(same_bits(data.example(two, b), all.example(one, b))) << batch << " " << b;
        EXPECT_TRUE(data.padding_is_untouched(two));
      }
}

TEST(JacobianBatch, BitsDependOnTheExampleAlone) {
  expect_bits_of_examples_alone<double>(small_jacobian<double>, 531);
  expect_bits_of_examples_alone<float>(small_jacobian<float>, 531);
}

TEST(JacobianBatch, NarrowVectorsToo) {
  for (const char* simd : {"avx2", "baseline"}) {
    ::setenv("LOIPE_SIMD", simd, 1);
    expect_bits_of_examples_alone<double>(small_jacobian<double>, 67);
    expect_bits_of_examples_alone<float>(small_jacobian<float>, 67);
    ::unsetenv("LOIPE_SIMD");
  }
}

Jacobian large_jacobian(JacobianOptions options) {
  options.shared = {1};
  options.wrt = {"x"};
  const std::vector<Argument> arguments{{"x", {DType::f64, {200}}}, {"W", {DType::f64, {200, 200}}}};
  return jacobian_of_function(detail::pack_function<2>(kLarge), arguments, options);
}

TEST(JacobianBatch, LargeProgramsRunExampleByExample) {
  EXPECT_FALSE(large_jacobian({.batch = 8}).vectorises_examples());
  expect_bits_of_examples_alone<double>(large_jacobian, 17);
}

TEST(JacobianBatch, AgreesWithSingleRunsOfTheReference) {
  const Jacobian jit = small_jacobian<double>({.batch = 64});
  const Jacobian reference = small_jacobian<double>({.backend = "reference"});
  Data<double> fast(jit, 19, kStructures, kStructures, 0), slow(reference, 19, kStructures, kArrays, 2);
  fast.run(jit);
  slow.run(reference);
  for (std::int64_t b = 0; b < 19; ++b) {
    const std::vector<double> x = fast.example(jit, b), y = slow.example(reference, b);
    for (std::size_t e = 0; e < x.size(); ++e) EXPECT_NEAR(x[e], y[e], 1e-13 * std::max(1.0, std::abs(y[e])));
  }
}

TEST(JacobianBatch, TensorsCarryALeadingAxis) {
  const auto f = [](auto x, auto w) { return x * w; };
  for (const char* backend : {"reference", "jit"}) {
    const Jacobian J = jacobian(f, {{"x", {DType::f64, {2}}}, {"w", {DType::f64, {2}}}},
                                {.backend = backend, .batch = 3, .shared = {"w"}});
    const JacobianResult result = J.run_batch(
        {Tensor::of<double>({3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}), Tensor::of<double>({2}, {3.0, 5.0})});
    EXPECT_EQ(result.outputs[0], Tensor::of<double>({3, 2}, {3.0, 10.0, 9.0, 20.0, 15.0, 30.0}));
    EXPECT_EQ(result.blocks[0][1],
              Tensor::of<double>({3, 2, 2}, {1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0, 5.0, 0.0, 0.0, 6.0}));
    EXPECT_EQ(J.run_batch({Tensor(TensorType{DType::f64, {0, 2}}), Tensor::of<double>({2}, {3.0, 5.0})})
                  .blocks[0][0]
                  .shape(),
              (Shape{0, 2, 2}));
  }
}

TEST(JacobianBatch, ManyThreadsAtTheSameTime) {
  const Jacobian J = small_jacobian<double>({.threads = 2, .batch = 600});
  Data<double> expected(J, 600, kStructures, kStructures, 0);
  expected.run(J);
  std::vector<std::thread> threads;
  std::array<bool, 4> same{};
  for (std::size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      Data<double> own(J, 600, kStructures, t % 2 ? kArrays : kStructures, 0);
      same[t] = true;
      for (int repetition = 0; repetition < 20; ++repetition) {
        own.run(J);
        for (std::int64_t b : {0, 299, 599})
          same[t] = same[t] && same_bits(own.example(J, b), expected.example(J, b));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (bool is_same : same) EXPECT_TRUE(is_same);
}

/// The entries of the patterns of one example's dense results, and zero elsewhere.
template <class T>
void expect_entries_of(const Jacobian& dense, const std::vector<T>& all, const Jacobian& sparse,
                       const std::vector<T>& entries) {
  std::size_t place = 0, next = 0;
  for (std::size_t i = 0; i < dense.output_count(); ++i)
    for (std::int64_t e = 0; e < dense.output_type(i).element_count(); ++e)
      ASSERT_EQ(entries.at(next++), all[place++]);
  for (std::size_t i = 0; i < dense.output_count(); ++i)
    for (std::size_t k = 0; k < dense.wrt().size(); ++k) {
      const SparsePattern pattern = sparse.block_pattern(i, k);
      ASSERT_EQ(pattern, dense.block_pattern(i, k));
      std::vector<T> rebuilt(static_cast<std::size_t>(pattern.row_count * pattern.column_count), T(0));
      for (std::size_t entry = 0; entry < pattern.rows.size(); ++entry)
        rebuilt[static_cast<std::size_t>(pattern.rows[entry] * pattern.column_count +
                                         pattern.columns[entry])] = entries.at(next++);
      for (T value : rebuilt) ASSERT_EQ(value, all[place++]) << i << " " << k;
    }
  EXPECT_EQ(next, entries.size());
}

template <class T>
void expect_entries_of_dense_blocks() {
  for (int threads : {1, 2})
    for (const char* backend : {"jit", "reference"})
      for (std::int64_t compiled_for : {std::int64_t{1}, std::int64_t{1500}}) {
        JacobianOptions options{.backend = backend, .threads = threads, .batch = compiled_for};
        const Jacobian dense = small_jacobian<T>(options);
        options.format = BlockFormat::coo;
        const Jacobian sparse = small_jacobian<T>(options);
        for (BatchLayout layout : {kStructures, kArrays})
          for (std::int64_t batch : {std::int64_t{19}, compiled_for}) {
            Data<T> whole(dense, batch, layout, layout, 3), entries(sparse, batch, layout, layout, 3);
            whole.run(dense);
            entries.run(sparse);
            for (std::int64_t b : {std::int64_t{0}, batch / 2, batch - 1})
              expect_entries_of(dense, whole.example(dense, b), sparse, entries.example(sparse, b));
            if (::testing::Test::HasFatalFailure()) return;
          }
      }
}

TEST(JacobianBatch, SparseResultsAreTheEntriesOfDenseOnes) {
  expect_entries_of_dense_blocks<double>();
  expect_entries_of_dense_blocks<float>();
}

TEST(JacobianBatch, PatternsAreSortedByRow) {
  const Jacobian J = small_jacobian<double>({.batch = 8, .format = BlockFormat::coo});
  EXPECT_EQ(J.block_pattern(1, 1), (SparsePattern{3, 3, {0, 1, 2}, {0, 1, 2}}));  // sin(x)*a by x
  EXPECT_EQ(J.block_type(1, 1), (TensorType{DType::f64, {3}}));
  EXPECT_EQ(J.block_pattern(0, 2).entry_count(), 6);  // M*x by M: a row of M for each row
  EXPECT_EQ(J.block_pattern(1, 3).entry_count(), 0);  // sin(x)*a by N
  EXPECT_EQ(J.block_type(1, 3), (TensorType{DType::f64, {0}}));
}

TEST(JacobianBatch, SparseTensorsHaveTheEntriesLast) {
  const auto f = [](auto x, auto w) { return x * w; };
  for (const char* backend : {"reference", "jit"}) {
    const Jacobian J =
        jacobian(f, {{"x", {DType::f64, {2}}}, {"w", {DType::f64, {2}}}},
                 {.wrt = {"w"}, .backend = backend, .batch = 3, .shared = {"w"}, .format = BlockFormat::coo});
    const Tensor w = Tensor::of<double>({2}, {3.0, 5.0});
    EXPECT_EQ(J.run_batch({Tensor::of<double>({3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}), w}).blocks[0][0],
              Tensor::of<double>({3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
    EXPECT_EQ(J({Tensor::of<double>({2}, {1.0, 2.0}), w}).blocks[0][0], Tensor::of<double>({2}, {1.0, 2.0}));
  }
}

TEST(JacobianBatch, MistakesAreNamed) {
  const auto f = [](auto x, auto w) { return x * w; };
  const auto compile = [&](JacobianOptions options) {
    return jacobian(f, {{"x", {DType::f64, {2}}}, {"weight", {DType::f64, {2}}}}, options);
  };
  EXPECT_THAT(message_of([&] { compile({.batch = 0}); }), HasSubstr("batch is 0, expected 1 or more"));
  EXPECT_THAT(message_of([&] { compile({.memory_limit = 1 << 30, .batch = std::int64_t{1} << 60}); }),
              HasSubstr("18446744073709551615 bytes, but the memory limit is 1073741824"));
  EXPECT_THAT(message_of([&] { compile({.shared = {"wieght"}}); }), HasSubstr("did you mean 'weight'"));
  EXPECT_THAT(message_of([&] { compile({.shared = {4}}); }), HasSubstr("shared position 4"));
  EXPECT_THAT(message_of([&] { compile({.memory_limit = 1000, .batch = 100}); }),
              HasSubstr("the memory limit is 1000"));
  const Jacobian J = compile({.batch = 4, .shared = {"weight"}});
  const Tensor x(TensorType{DType::f64, {4, 2}}), w(TensorType{DType::f64, {2}});
  EXPECT_THAT(message_of([&] { J.run_batch({x}); }), HasSubstr("wants 2 arguments, got 1"));
  EXPECT_THAT(message_of([&] { J.run_batch({w, w}); }),
              HasSubstr("argument 'x' is f64[2], expected f64[4,2]"));
  EXPECT_THAT(message_of([&] { J.run_batch({x, x}); }),
              HasSubstr("the shared argument 'weight' is f64[4,2]"));
  Data<double> data(J, 4, kArrays, kArrays, 0);
  data.layouts.argument_stride = 3;
  EXPECT_THAT(message_of([&] { data.run(J); }), HasSubstr("at least the number of examples, 4"));
  data.layouts = {kStructures, kStructures, 4, 0};
  EXPECT_THAT(message_of([&] { data.run(J); }), HasSubstr("an array of structures, which has none"));
  data.layouts = {kArrays, kArrays, 100, 0};
  EXPECT_THAT(message_of([&] { data.run(J); }), HasSubstr("structure of arrays of stride 100, 832 bytes"));
  data.layouts = {};
  data.examples = -1;
  EXPECT_THAT(message_of([&] { data.run(J); }), HasSubstr("a batch of -1 examples"));
}

}  // namespace
}  // namespace loipe
