// SPDX-License-Identifier: Apache-2.0
// Softmax, cross-entropy and normalisations, as users of other tools found them wrong.
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "every_way.h"

namespace loipe::testing {
namespace {

using Arguments = std::span<const Traced>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Entry i of a vector, as a scalar.
Traced entry(const Traced& x, std::int64_t i) { return reshape(slice(x, {i}, {i + 1}), {}); }

TEST(Users, U49_SoftmaxOfAMaskedProduct) {
  check_in_every_way(
      [](Arguments x) { return entry(softmax(x[0] * constant(vector_of({4, -kInfinity, 4, 4, 4}))), 2); },
      {vector_of({1, 1, 1, 1, 1})},
      [](const Derivatives& d) {
        expect_entries(d.value, {0.25});
        expect_entries(d.by[0], {-0.25, 0, 0.75, -0.25, -0.25}, 1e-15);
      });
}

TEST(Users, U50_LogSumExpOfMinusInfinity) {
  check_in_every_way(
      [](Arguments x) {
        const Traced shift = constant(vector_of({0, 1})) * x[0];
        return logsumexp(constant(vector_of({-kInfinity, -kInfinity})) + shift);
      },
      {Tensor::scalar(1.0)},
      [](const Derivatives& d) {
        expect_entries(d.value, {-kInfinity});
        expect_entries(d.by[0], {0}, 0);
      });
  check_in_every_way([](Arguments x) { return logsumexp(x[0]); }, {vector_of({-kInfinity, 1})},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {1});
                       expect_entries(d.by[0], {0, 1}, 0);
                     });
}

/// The sum over the classes that have a label.
Traced labelled_cross_entropy(const Traced& logits, const Traced& labels) {
  return -sum(select(labels > 0, labels * log_softmax(logits), 0));
}

TEST(Users, U52_CrossEntropyWithMaskedLogits) {
  const auto loss = [](Arguments x) { return labelled_cross_entropy(x[0], constant(vector_of({0, 1, 0}))); };
  const std::vector<Tensor> logits{vector_of({-kInfinity, 0, 0})};
  check_in_every_way(loss, logits, [](const Derivatives& d) {
    expect_entries(d.value, {0.69314718});
    expect_entries(d.by[0], {0, -0.5, 0.5}, 1e-15);
  });
  // A JVP: the derivative along a direction, at a zero one.
  const auto along = [&](Arguments x) {
    const Traced moved[] = {x[0] + x[1] * constant(vector_of({0, 0, 0}))};
    return loss(moved);
  };
  check_in_every_way(along, {logits[0], Tensor::scalar(0.0)},
                     [](const Derivatives& d) { expect_entries(d.by[1], {0}, 0); });
}

TEST(Users, U53_CrossEntropyWithoutAnyTarget) {
  // Targets are indices; one that is ignored has no class, so its row of one_hot is 0. The mean is
  // over those that count, 0 of none.
  const auto mean_loss = [](Arguments x) {
    const Traced labels = one_hot(x[1], x[0].shape().back(), DType::f64);
    const Traced counted = sum(labels);
    return labelled_cross_entropy(x[0], labels) / select(counted > 0, counted, 1);
  };
  Rng rng(53);
  Tensor logits(TensorType{DType::f64, {5, 10}});
  for (std::int64_t i = 0; i < 50; ++i) logits.set(i, rng.uniform(-2, 2));
  const Tensor ignored = Tensor::of<std::int64_t>({5}, {-100, -100, -100, -100, -100});
  check_in_every_way(mean_loss, {logits, ignored}, [](const Derivatives& d) {
    expect_entries(d.value, {0}, 0);
    expect_entries(d.by[0], std::vector<double>(50, 0.0), 0);
  });
  check_in_every_way(mean_loss, {Tensor::of<double>({1, 3}, {2, 1, 0.1}), Tensor::of<std::int64_t>({1}, {0})},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {0.41703002}, 1e-8);
                       expect_entries(d.by[0], {-0.34099886, 0.24243297, 0.09856589}, 1e-8);
                     });
}

TEST(Users, U55_LayerNormOfLargeAndConstantRows) {
  check_in_every_way([](Arguments x) { return layer_norm(x[0], 1e-5); },
                     {floats_of({40000, 40001, 40002, 40003})},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {-1.3416354, -0.4472118, 0.4472118, 1.3416354}, 1e-6);
                       const std::vector<double> all = entries(d.by[0]);
                       const std::vector<double> first{0.2683303, -0.3577684, -0.0894434, 0.1788815};
                       for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(all[i], first[i], 1e-6);
                     });
  check_in_every_way([](Arguments x) { return layer_norm(x[0], 1e-5); },
                     {floats_of({1234, 1234, 1234, 1234, 1234, 1234, 1234})},
                     [](const Derivatives& d) {
                       expect_entries(d.value, std::vector<double>(7, 0.0), 0);
                       for (double x : entries(d.by[0])) EXPECT_TRUE(std::isfinite(x));
                     });
}

TEST(Users, U56_LayerNormOfAZeroRow) {
  check_in_every_way([](Arguments x) { return entry(layer_norm(x[0], 1e-5), 0); }, {floats_of({0, 0, 0, 0})},
                     [](const Derivatives& d) {
                       expect_entries(d.by[0], {237.170825, -79.0569415, -79.0569415, -79.0569415}, 1e-6);
                     });
}

TEST(Users, U58_RmsNormUsesItsWeightOnce) {
  check_in_every_way([](Arguments x) { return sum(rms_norm(x[0], x[1], 0)); },
                     {vector_of({1, 2}), vector_of({3, 0.5})},
                     [](const Derivatives& d) {
                       expect_entries(d.by[0], {1.39140217, -0.69570109}, 1e-8);
                       expect_entries(d.by[1], {0.63245553, 1.26491106}, 1e-8);
                     });
}

/// Composite ops are written in others before a back end sees them, so those of scalars and small
/// rows are vector code over examples, as those others are (where there is any).
TEST(Users, CompositeOpsAreVectorisedOverExamples) {
  const auto vectorises = [](auto function) {
    return jacobian(function, {{"x", {DType::f64, {3}}}}, {.batch = 64}).vectorises_examples();
  };
  const bool expected = vectorises([](auto x) { return tanh(x); });
  EXPECT_EQ(vectorises([](auto x) { return softmax(x); }), expected);
  EXPECT_EQ(vectorises([](auto x) { return logsumexp(x); }), expected);
  EXPECT_EQ(vectorises([](auto x) { return layer_norm(gelu(x)); }), expected);
  EXPECT_EQ(vectorises([](auto x) { return norm(silu(clamp(x, -1, 1))); }), expected);
}

/// Sums of the optimised reverse program that skip what a mask hides, and the largest value in it.
std::pair<int, std::int64_t> masked_sums_and_largest(const Program& program) {
  const CompileOptions options{.request = {floating_arguments(program), reverse_order(program), {}}};
  const Program optimised = accumulate_and_optimise(program, options).optimised;
  int masked = 0;
  std::int64_t largest = 0;
  for (std::uint32_t i = 0; i < optimised.size(); ++i) {
    largest = std::max(largest, optimised.type(Value{i}).element_count());
    if (optimised.op(Value{i}).name.value != "einsum") continue;
    for (Value operand : optimised.operands(Value{i}))
      masked += optimised.type(operand).dtype == DType::boolean;
  }
  return {masked, largest};
}

/// What relu and softmax hide is 0 anyway, so behind them stand ordinary matrix products, and no
/// Jacobian of a row by a row is formed.
TEST(Users, MasksOfReluAndSoftmaxLeaveMatrixProducts) {
  const Tensor matrix(TensorType{DType::f64, {8, 8}});
  const auto network = traced([](Arguments v) { return sum(square(matmul(relu(matmul(v[0], v[1])), v[2]))); },
                              {matrix, matrix, matrix});
  EXPECT_EQ(masked_sums_and_largest(network), std::pair(0, std::int64_t{64}));
  const auto attention = traced(
      [](Arguments v) {
        const Traced logits = layer_norm(matmul(v[0], transpose(v[1])));
        return sum(square(matmul(softmax(logits), v[2])));
      },
      {matrix, matrix, matrix});
  EXPECT_EQ(masked_sums_and_largest(attention), std::pair(0, std::int64_t{64}));
}

/// Implicit ops are made of ops that are linear in their directions, so they have a Hessian: of the
/// log-determinant log det a = 2 sum log diag(cholesky(a)), -a^-1 (x) a^-1 on symmetric a.
TEST(Users, HessianThroughCholesky) {
  const auto log_determinant = [](auto a) {
    const auto on_diagonal = iota({2, 2}, 0, DType::i64) == iota({2, 2}, 1, DType::i64);
    return 2 * sum(log(select(on_diagonal, cholesky(a), 1)));
  };
  const Tensor a = Tensor::of<double>({2, 2}, {4, 1, 1, 3});  // inverse [3, -1; -1, 4] / 11
  for (const char* backend : {"reference", "jit"}) {
    const auto result = hessian(log_determinant, {{"a", a.type()}}, {.backend = backend})({a});
    const double inverse[2][2] = {{3 / 11.0, -1 / 11.0}, {-1 / 11.0, 4 / 11.0}};
    for (std::int64_t i = 0; i < 16; ++i) {
      const auto bit = [&](std::int64_t k) { return static_cast<std::size_t>(i >> k & 1); };
      const std::size_t p = bit(3), q = bit(2), r = bit(1), s = bit(0);
      // The op sees the symmetric part, so both ways to pair the indices have half.
      EXPECT_NEAR(result.derivatives[0].at(i),
                  -0.5 * (inverse[p][r] * inverse[q][s] + inverse[p][s] * inverse[q][r]), 1e-14)
          << backend << ", entry " << i;
    }
  }
}

/// There is no bf16 storage: the numbers are rounded to it, the statistics are those of f32.
TEST(Users, U82_RmsNormOfSmallNumbersOfFewDigits) {
  Rng rng(82);
  Tensor x(TensorType{DType::f32, {32}});
  double square = 0;
  for (std::int64_t i = 0; i < 32; ++i) {
    const double normal =
        std::sqrt(-2 * std::log(1 - rng.uniform(0, 1))) * std::cos(6.283185307 * rng.uniform(0, 1));
    int exponent = 0;
    const double fraction = std::frexp(0.058 * normal, &exponent);
    x.set(i, std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
    square += x.at(i) * x.at(i) / 32;
  }
  check_in_every_way([](Arguments v) { return rms_norm(v[0], 1e-6); }, {x},
                     [&](const Derivatives& d) {
                       for (std::int64_t i = 0; i < 32; ++i)
                         EXPECT_NEAR(d.value.at(i), x.at(i) / std::sqrt(square + 1e-6),
                                     0.01 * std::abs(d.value.at(i)) + 1e-6);
                     });
}

}  // namespace
}  // namespace loipe::testing
