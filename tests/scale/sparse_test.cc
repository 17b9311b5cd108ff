// SPDX-License-Identifier: Apache-2.0
// Sparse Jacobians of a million rows, in memory linear in their entries.
#include <gtest/gtest.h>
#include <loipe/loipe.h>
#include <sys/resource.h>

#include <cmath>

namespace loipe {
namespace {

constexpr std::int64_t kRows = 1'000'000;

/// Of this process, the largest so far; each test is a process of its own.
double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Tensor point() {
  Tensor x(TensorType{DType::f64, {kRows}});
  for (std::int64_t i = 0; i < kRows; ++i) x.set(i, std::sin(static_cast<double>(i)));
  return x;
}

/// Compiles and runs; the block's values.
template <class Function>
Tensor entries(const Function& f, const Tensor& x, std::int64_t count) {
  const Jacobian J = jacobian(f, {{"x", x.type()}}, {.format = BlockFormat::coo});
  EXPECT_EQ(J.block_pattern(0, 0).entry_count(), count);
  const Tensor values = J({x}).blocks[0][0];
  // Argument, result and entries are some of them.
  EXPECT_LT(J.peak_bytes(), static_cast<std::size_t>(8 * (3 * count + 8 * kRows)));
  EXPECT_LT(peak_megabytes(), 200 + 150e-6 * static_cast<double>(count));
  return values;
}

TEST(Sparse, Diagonal) {
  const Tensor x = point();
  const Tensor values = entries([](auto t) { return sin(t) * t; }, x, kRows);
  for (std::int64_t i = 0; i < kRows; i += 997)
    EXPECT_NEAR(values.at(i), std::cos(x.at(i)) * x.at(i) + std::sin(x.at(i)), 1e-14);
}

TEST(Sparse, Banded) {
  const Tensor x = point();
  const auto f = [](auto t) {
    const Traced left = slice(t, {0}, {kRows - 2}), middle = slice(t, {1}, {kRows - 1}),
                 right = slice(t, {2}, {kRows});
    return middle * (left + right) + square(middle);
  };
  const Tensor values = entries(f, x, 3 * (kRows - 2));
  for (std::int64_t row = 0; row < kRows - 2; row += 997) {
    EXPECT_EQ(values.at(3 * row), x.at(row + 1));
    EXPECT_NEAR(values.at(3 * row + 1), x.at(row) + x.at(row + 2) + 2 * x.at(row + 1), 1e-14);
    EXPECT_EQ(values.at(3 * row + 2), x.at(row + 1));
  }
}

TEST(Sparse, Gather) {
  const Tensor x = point();
  Tensor places(TensorType{DType::i64, {kRows}});
  for (std::int64_t i = 0; i < kRows; ++i) places.set(i, static_cast<double>(i * 7919 % kRows));
  const auto f = [&](auto t) { return square(take(t, constant(places))); };
  const Tensor values = entries(f, x, kRows);
  for (std::int64_t i = 0; i < kRows; i += 997)
    EXPECT_NEAR(values.at(i), 2 * x.at(static_cast<std::int64_t>(places.at(i))), 1e-14);
}

/// An index that only the run knows has no pattern; the structured form needs none.
TEST(Sparse, GatherAtRunTime) {
  const Tensor x = point();
  Tensor places(TensorType{DType::i64, {kRows}});
  for (std::int64_t i = 0; i < kRows; ++i) places.set(i, static_cast<double>(i * 7919 % kRows));
  const auto f = [](auto t, auto at) { return square(take(t, at)); };
  const Argument arguments[] = {{"x", x.type()}, {"at", places.type()}};
  EXPECT_THROW(jacobian(f, arguments, {.format = BlockFormat::coo}), ResourceError);
  const Jacobian J = jacobian(f, arguments, {.format = BlockFormat::structured});
  EXPECT_EQ(J.structure(0, 0).stored_elements(), kRows);
  const JacobianResult result = J({x, places});
  Tensor ones(x.type());
  for (double& one : ones.elements<double>()) one = 1;
  const Tensor product = multiply(J.structure(0, 0), result.terms[0][0], ones);
  for (std::int64_t i = 0; i < kRows; i += 997)
    EXPECT_NEAR(product.at(i), 2 * x.at(static_cast<std::int64_t>(places.at(i))), 1e-14);
  EXPECT_LT(peak_megabytes(), 400);
}

}  // namespace
}  // namespace loipe
