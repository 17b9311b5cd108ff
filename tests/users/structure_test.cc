// SPDX-License-Identifier: Apache-2.0
// Memory of dense Jacobians, sparse results, and code that does not grow with the data.
#include <cmath>
#include <numeric>

#include "driver/pattern_check.h"
#include "every_way.h"

namespace loipe::testing {
namespace {

Tensor numbers(const Shape& shape, double (*entry)(double)) {
  Tensor tensor(TensorType{DType::f64, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, entry(static_cast<double>(i)));
  return tensor;
}

Tensor vector(std::initializer_list<double> entries) {
  return Tensor::of<double>({static_cast<std::int64_t>(entries.size())},
                            std::span<const double>(entries.begin(), entries.size()));
}

Tensor indices(std::initializer_list<std::int64_t> entries) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(entries.size())},
                                  std::span<const std::int64_t>(entries.begin(), entries.size()));
}

TensorType f64(Shape shape) { return {DType::f64, std::move(shape)}; }

/// Numbers that the structured form of block (0, 0) stores.
std::int64_t stored(const Jacobian& J) { return J.structure(0, 0).stored_elements(); }

void expect_entries(const Tensor& tensor, const std::vector<double>& expected, double tolerance = 1e-12) {
  ASSERT_EQ(tensor.element_count(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(tensor.at(static_cast<std::int64_t>(i)), expected[i],
                tolerance * std::max(1.0, std::abs(expected[i])))
        << "entry " << i;
}

Traced differences_squared(const Traced& x) {
  const std::int64_t n = x.shape()[0];
  return square(slice(x, {1}, {n}) - slice(x, {0}, {n - 1}));
}

TEST(Users, U1_TallJacobiansKeepTheirBlocks) {
  const Tensor weights = numbers({2, 128, 16}, [](double i) { return std::cos(i); });
  const auto f = [&](auto x) {
    return tanh(dot_general(x, constant(weights), {.lhs_contract = {1}, .rhs_contract = {0}}));
  };
  for (const char* order : {"forward", "reverse", "markowitz"}) {
    const Jacobian terms =
        jacobian(f, {{"x", f64({10, 2})}}, {.order = order, .format = BlockFormat::structured});
    EXPECT_EQ(stored(terms), 20480 * 2);
    const Jacobian J = jacobian(f, {{"x", f64({10, 2})}}, {.order = order, .format = BlockFormat::coo});
    EXPECT_EQ(J.block_pattern(0, 0).entry_count(), 40960);
    const std::size_t result = 40960 * sizeof(double), outputs = 20480 * sizeof(double);
    EXPECT_LT(J.peak_bytes() - result - outputs, 4 * result);
    EXPECT_LE(J.cost().actual_multiplications, 40960);
  }
}

TEST(Users, U2_GatherThenProduct) {
  const auto f = [](auto a) {
    const Traced rows = take(a, constant(indices({4, 1, 4})));
    return sum(matmul(rows, ones({3, 3}, DType::f64)));
  };
  const Tensor a = vector({1, 2, 3, 4, 5, 6});
  check_in_every_way([&](std::span<const Traced> x) { return f(x[0]); }, {a},
                     [](const Derivatives& d) { expect_entries(d.by[0], {0, 3, 0, 0, 6, 0}); });
  const Jacobian J = jacobian(f, {{"a", f64({6})}}, {.format = BlockFormat::coo});
  EXPECT_EQ(J.block_pattern(0, 0).entry_count(), 2);
  expect_entries(J({a}).blocks[0][0], {3, 6});
  const Jacobian large = jacobian(f, {{"a", f64({10'000'000})}}, {.format = BlockFormat::coo});
  EXPECT_EQ(large.block_pattern(0, 0), (SparsePattern{1, 10'000'000, {0, 0}, {1, 4}}));
  EXPECT_LT(large.peak_bytes(), 200'000'000U);
}

// One element of each row: the picked logits of a classification, with an index outside of the classes.
TEST(Users, OneElementOfEachRow) {
  Tensor places({DType::i32, {3, 1}});
  places.set(0, 2), places.set(1, 0), places.set(2, 5);
  const auto f = [&](auto x) { return square(take_along_axis(x, constant(places), 1)); };
  const Tensor x = [] {
    Tensor t({DType::f64, {3, 3}});
    for (std::int64_t i = 0; i < 9; ++i) t.set(i, static_cast<double>(i + 1));
    return t;
  }();
  check_in_every_way([&](std::span<const Traced> a) { return f(a[0]); }, {x},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {9, 16, 0});
                       expect_entries(d.by[0], {0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0,
                                                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
                     });
  EXPECT_EQ(jacobian(f, {{"x", f64({3, 3})}}, {.format = BlockFormat::coo}).block_pattern(0, 0).entry_count(),
            2);
  const auto wrong = [](auto a, auto b) { return take_along_axis(a, b, 1); };
  EXPECT_THROW(jacobian(wrong, {{"a", f64({3, 3})}, {"b", {DType::i32, {2, 1}}}}), UserError);
}

TEST(Users, U4_SlicesStaySymbolic) {
  const auto f = [](auto x) { return slice(x, {1}, {x.shape()[0]}); };
  const Jacobian dense = jacobian(f, {{"x", f64({10})}});
  const Tensor block = dense({numbers({10}, [](double i) { return i; })}).blocks[0][0];
  for (std::int64_t i = 0; i < 9; ++i)
    for (std::int64_t j = 0; j < 10; ++j) EXPECT_EQ(block.at(10 * i + j), j == i + 1 ? 1 : 0);
  const auto text = [&](std::int64_t n) {
    return jacobian(f, {{"x", f64({n})}}, {.format = BlockFormat::coo}).program_text().size();
  };
  EXPECT_LE(text(1'000'000), text(1000) + 20);  // extents have more digits
}

TEST(Users, U7_AndU59_TheBatchAxisIsRecognised) {
  const auto f = [](auto X, auto W) { return tanh(matmul(X, W)); };
  for (const char* order : {"forward", "reverse", "markowitz"}) {
    const Jacobian J = jacobian(f, {{"X", f64({8, 4})}, {"W", f64({4, 3})}},
                                {.wrt = {"X"}, .order = order, .format = BlockFormat::structured});
    EXPECT_EQ(stored(J), 8 * 3 * 4);
    const Jacobian coo = jacobian(f, {{"X", f64({8, 4})}, {"W", f64({4, 3})}},
                                  {.wrt = {"X"}, .order = order, .format = BlockFormat::coo});
    EXPECT_EQ(coo.block_pattern(0, 0).entry_count(), 96);
  }
}

TEST(Users, U13_U14_TwoDiagonalsAsCoordinatesAndRows) {
  const Tensor x = vector({1, 2, 4, 7});
  for (const char* order : {"forward", "reverse", "markowitz"}) {
    const Jacobian J =
        jacobian(differences_squared, {{"x", f64({4})}}, {.order = order, .format = BlockFormat::coo});
    const SparsePattern pattern = J.block_pattern(0, 0);
    EXPECT_EQ(pattern, (SparsePattern{3, 4, {0, 0, 1, 1, 2, 2}, {0, 1, 1, 2, 2, 3}}));
    const Tensor values = J({x}).blocks[0][0];
    expect_entries(values, {-2, 2, -4, 4, -6, 6});
    const CsrIndices rows = csr_indices(pattern);
    EXPECT_EQ(rows.indptr, Tensor::of<std::int32_t>({4}, {0, 2, 4, 6}));
    EXPECT_EQ(rows.indices, Tensor::of<std::int32_t>({6}, {0, 1, 1, 2, 2, 3}));
    const CscIndices columns = csc_indices(pattern);
    EXPECT_EQ(columns.indptr, Tensor::of<std::int32_t>({5}, {0, 1, 3, 5, 6}));
    EXPECT_EQ(columns.indices, Tensor::of<std::int32_t>({6}, {0, 0, 1, 1, 2, 2}));
    // New values in the same entries.
    expect_entries(J({vector({0, 0, 1, 1})}).blocks[0][0], {0, 0, -2, 2, 0, 0});
    EXPECT_EQ(J.block_pattern(0, 0), pattern);
  }
}

TEST(Users, U17_SumsOverAnAxisStayBroadcast) {
  const auto f = [](auto X) { return sum(square(X), {1}); };
  const Jacobian J = jacobian(f, {{"X", f64({3, 4})}}, {.format = BlockFormat::structured});
  EXPECT_EQ(stored(J), 12);
  const Jacobian coo = jacobian(f, {{"X", f64({3, 4})}}, {.format = BlockFormat::coo});
  const SparsePattern pattern = coo.block_pattern(0, 0);
  ASSERT_EQ(pattern.entry_count(), 12);
  for (std::size_t e = 0; e < 12; ++e) EXPECT_EQ(pattern.rows[e], pattern.columns[e] / 4);
}

TEST(Users, U19_SparseWeightsKeepIntegersOutside) {
  // Weights of linear interpolation on 5 points: 1 - t at the point below, t above.
  const auto f = [](auto x) {
    const Traced place = x * 4.0, below = floor(place), t = place - below;
    const Traced at = convert(reshape(below, {1}), DType::i64);
    const Traced one = reshape(convert(full({}, 1, DType::f64), DType::i64), {1});
    return scatter_add(scatter_add(zeros({5}, DType::f64), at, reshape(1.0 - t, {1})), at + one,
                       reshape(t, {1}));
  };
  check_in_every_way([&](std::span<const Traced> x) { return f(x[0]); }, {Tensor::scalar(0.3)},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {0, 0.8, 0.2, 0, 0});
                       expect_entries(d.by[0], {0, -4, 4, 0, 0});
                     });
  const Jacobian J = jacobian(f, {{"x", f64({})}}, {.format = BlockFormat::structured});
  EXPECT_EQ(stored(J), 2);
  const JacobianResult result = J({Tensor::scalar(0.3)});
  expect_entries(densify(J.structure(0, 0), result.terms[0][0]), {0, -4, 4, 0, 0});
}

TEST(Users, U20_SparseConstructorsBuildNoMatrix) {
  // 1^T A 1 for a matrix of n by n with 777 entries (i - j)^2 / p, i - j = 11.
  constexpr std::int64_t n = 1000, entries = 777;
  Tensor rows(TensorType{DType::i64, {entries}}), columns(TensorType{DType::i64, {entries}});
  for (std::int64_t e = 0; e < entries; ++e) {
    rows.set(e, static_cast<double>(e + 11));
    columns.set(e, static_cast<double>(e));
  }
  const auto f = [&](auto p, auto u) {
    const Traced i = constant(rows), j = constant(columns);
    const Traced distance = convert(i, DType::f64) - convert(j, DType::f64);
    return sum(take(u, i) * (square(distance) / p) * take(u, j));
  };
  const Jacobian J = jacobian(f, {{"p", f64({})}, {"u", f64({n})}});
  EXPECT_NEAR(J({Tensor::scalar(1.0), numbers({n}, [](double) { return 1.0; })}).blocks[0][0].at(0), -94017,
              1e-9);
  EXPECT_LT(J.peak_bytes(), static_cast<std::size_t>(n * n));
}

TEST(Users, U22_ATridiagonalProductHas3nMinus2Entries) {
  const auto f = [](auto x) {
    const std::int64_t n = x.shape()[0];
    const Traced padded = pad(x, 0.0, {1}, {1});
    return x * (slice(padded, {0}, {n}) + x + slice(padded, {2}, {n + 2}));
  };
  check_in_every_way([&](std::span<const Traced> x) { return f(x[0]); }, {vector({1, 2, 3})},
                     [](const Derivatives& d) { expect_entries(d.by[0], {4, 1, 0, 2, 8, 2, 0, 3, 8}); });
  for (const char* order : {"forward", "reverse", "markowitz"})
    EXPECT_EQ(jacobian(f, {{"x", f64({100})}}, {.order = order, .format = BlockFormat::coo})
                  .block_pattern(0, 0)
                  .entry_count(),
              298);
}

TEST(Users, U23_ThePatternHoldsAtEveryPoint) {
  const auto f = [](auto u) { return sign(u) * u; };
  const Jacobian J = jacobian(f, {{"u", f64({2})}}, {.format = BlockFormat::coo});
  expect_entries(J({vector({0.3, -2})}).blocks[0][0], {1, -1});
  expect_entries(J({vector({0, 0})}).blocks[0][0], {0, 0});
  EXPECT_EQ(J.block_pattern(0, 0), (SparsePattern{2, 2, {0, 1}, {0, 1}}));
}

TEST(Users, U25_ConstantZerosLeaveNoEntries) {
  const Tensor C = Tensor::of<double>({2, 2}, {1, 1, 0, 1});
  const auto plain = [&](auto x) { return matmul(constant(C), x); };
  const auto composed = [&](auto x) { return tanh(matmul(constant(C), exp(x))); };
  const SparsePattern expected{2, 2, {0, 0, 1}, {0, 1, 1}};
  for (const char* order : {"forward", "reverse", "markowitz"}) {
    const JacobianOptions options{.order = order, .format = BlockFormat::coo};
    const Jacobian J = jacobian(plain, {{"x", f64({2})}}, options);
    EXPECT_EQ(J.block_pattern(0, 0), expected);
    expect_entries(J({vector({5, 7})}).blocks[0][0], {1, 1, 1});
    const Jacobian K = jacobian(composed, {{"x", f64({2})}}, options);
    EXPECT_EQ(K.block_pattern(0, 0), expected);
    const double a = std::exp(0.1), b = std::exp(0.2), s = 1 - std::pow(std::tanh(a + b), 2);
    expect_entries(K({vector({0.1, 0.2})}).blocks[0][0], {s * a, s * b, (1 - std::pow(std::tanh(b), 2)) * b});
  }
}

TEST(Users, U26_DeclaredPatternsAreCompared) {
  const Jacobian J = jacobian(differences_squared, {{"x", f64({4})}}, {.format = BlockFormat::coo});
  const SparsePattern structural = J.block_pattern(0, 0);
  const PatternDifference diagonal = compare_patterns("jac.0.x", {3, 4, {0, 1, 2}, {0, 1, 2}}, structural);
  EXPECT_EQ(diagonal.missing, 3);
  EXPECT_EQ(diagonal.always_zero, 0);
  EXPECT_EQ(diagonal.first_missing, "(0, 1)");
  SparsePattern dense{3, 4, {}, {}};
  for (std::int64_t i = 0; i < 12; ++i) {
    dense.rows.push_back(i / 4);
    dense.columns.push_back(i % 4);
  }
  const PatternDifference full = compare_patterns("jac.0.x", dense, structural);
  EXPECT_EQ(full.missing, 0);
  EXPECT_EQ(full.always_zero, 6);
}

Traced objective(const Traced& x) {
  const std::int64_t n = x.shape()[0];
  const Traced here = slice(x, {0}, {n - 1}), next = slice(x, {1}, {n});
  return sum(100.0 * square(square(here) - next) + square(here - 1.0));
}

Traced constraints(const Traced& x) {
  const std::int64_t n = x.shape()[0];
  const Traced a = slice(x, {0}, {n - 2}), b = slice(x, {1}, {n - 1}), c = slice(x, {2}, {n});
  return 3.0 * integer_pow(b, 3) + 2.0 * c - 5.0 + sin(b - c) * sin(b + c) + 4.0 * b - a * exp(a - b) - 3.0;
}

TEST(Users, U32_CodeDoesNotGrowWithTheData) {
  const auto start = [](std::int64_t n) {
    return numbers({n}, [](double i) { return std::fmod(i, 2) == 0 ? -1.2 : 1.0; });
  };
  const Jacobian gradient = jacobian(objective, {{"x", f64({6})}});
  const JacobianResult at = gradient({start(6)});
  EXPECT_NEAR(at.outputs[0].at(0), 1040.6, 1e-9);
  expect_entries(at.blocks[0][0], {-215.6, 792, -655.6, 792, -655.6, -88});
  const Tensor rows = jacobian(constraints, {{"x", f64({4})}})({start(4)}).blocks[0][0];
  expect_entries(rows, {.02216063, 13.77633364, 2.67546318, 0, 0, -18.050027, 25.30955032, 1.09070257}, 1e-8);
  const auto text = [&](std::int64_t n) {
    return jacobian(constraints, {{"x", f64({n})}}, {.format = BlockFormat::structured})
        .program_text()
        .size();
  };
  EXPECT_LE(text(10'000), text(100) * 120 / 100);
}

/// Two implicit edges from one operand are one that multiplies by both; nothing of n by n is formed.
TEST(Structure, AnOperandThatStandsTwiceInAnImplicitOp) {
  const auto f = [](auto x) { return sum(square(linear_recurrence(x, x))); };
  constexpr std::int64_t n = 5000;
  const Derivative large = gradient(f, {{"x", f64({n})}});
  EXPECT_LT(large.cost().actual_multiplications, 20 * n);
  EXPECT_LT(large.peak_bytes(), static_cast<std::size_t>(200 * n));
  const Tensor x = vector({0.5, -1, 2});  // y = (0.5, -1 - 0.5, 2 + 2 (-1.5)) with y_0 = x_0
  const Tensor found = gradient(f, {{"x", f64({3})}})({x}).derivatives[0];
  const auto value = [](double a, double b, double c) {
    const double y1 = b * a + b, y2 = c * y1 + c;
    return a * a + y1 * y1 + y2 * y2;
  };
  const double h = 1e-6;
  EXPECT_NEAR(found.at(0), (value(0.5 + h, -1, 2) - value(0.5 - h, -1, 2)) / (2 * h), 1e-7);
  EXPECT_NEAR(found.at(1), (value(0.5, -1 + h, 2) - value(0.5, -1 - h, 2)) / (2 * h), 1e-7);
  EXPECT_NEAR(found.at(2), (value(0.5, -1, 2 + h) - value(0.5, -1, 2 - h)) / (2 * h), 1e-7);
}

TEST(Structure, NumbersThatAreNoneAreRefused) {
  const Jacobian J = jacobian(differences_squared, {{"x", f64({4})}});
  EXPECT_THROW(J.block_pattern(1, 0), UserError);
  EXPECT_THROW(J.block_pattern(0, 9), UserError);
  EXPECT_THROW(J.block_type(5, 0), UserError);
  EXPECT_THROW(J.argument_name(7), UserError);
  EXPECT_THROW(J.output_type(3), UserError);
  const Derivative H = hessian(objective, {{"x", f64({4})}});
  EXPECT_THROW(H.pattern(9), UserError);
  EXPECT_THROW(H.result_type(9), UserError);
  EXPECT_THROW(H.is_shared(9), UserError);
}

}  // namespace
}  // namespace loipe::testing
