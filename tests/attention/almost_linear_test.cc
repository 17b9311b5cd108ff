// SPDX-License-Identifier: Apache-2.0
// The kernels of almost-linear attention against the dense evaluation, and its derivatives against
// differences.
#include "attention/almost_linear/almost_linear.h"

#include <gtest/gtest.h>

#include "attention/almost_linear_case.h"
#include "attention/almost_linear_reference.h"
#include "base/simd_level.h"

namespace loipe::attention::almost_linear::testing {

namespace {

template <class E>
void run_reference(LinearCase<E>& l, LinearResults<E>& r) {
  const Problem<E> p = l.c.problem();
  const reference::Dense<E> dense(p, l.with_pointers());
  dense.forward(r.forward());
  dense.vjp(l.c.cotangents(), r.inputs());
}

/// Largest deviation over the largest entry, or over 1e-3: a single key leaves derivatives that are 0 but for
/// rounding. Infinity where NaN or infinities differ.
template <class E>
double deviation(const Array<E>& got, const Array<E>& expected) {
  double largest = 1e-3, difference = 0;
  for (std::int64_t h = 0; h < expected.heads(); ++h)
    for (std::int64_t i = 0; i < expected.row_count(); ++i)
      for (std::int64_t c = 0; c < expected.columns(); ++c) {
        const double a = got.at(h, i, c), b = expected.at(h, i, c);
        if (a == b) continue;
        if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
        largest = std::max(largest, std::abs(b));
        difference = std::max(difference, std::abs(a - b));
      }
  return difference / largest;
}

template <class E>
void expect_near(const LinearResults<E>& got, const LinearResults<E>& expected, const std::string& where) {
  const double tolerance = sizeof(E) == 8 ? 1e-10 : 1e-4;
  EXPECT_LT(deviation(got.o, expected.o), tolerance) << "o, " << where;
  EXPECT_LT(deviation(got.lse, expected.lse), tolerance) << "lse, " << where;
  EXPECT_LT(deviation(got.denominator, expected.denominator), tolerance) << "denominator, " << where;
  EXPECT_LT(deviation(got.q, expected.q), tolerance) << "q, " << where;
  EXPECT_LT(deviation(got.k, expected.k), tolerance) << "k, " << where;
  EXPECT_LT(deviation(got.v, expected.v), tolerance) << "v, " << where;
  EXPECT_EQ(got.guarded, expected.guarded) << where;
  EXPECT_EQ(got.o.written(), expected.o.written()) << where;
  EXPECT_EQ(got.q.written(), expected.q.written()) << where;
  EXPECT_EQ(got.k.written(), expected.k.written()) << where;
  EXPECT_EQ(got.v.written(), expected.v.written()) << where;
}

/// Kernels of one instruction set, or of the highest that the CPU has below it.
class ScopedSimdLevel {
 public:
  explicit ScopedSimdLevel(int level) {
    constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
    const int highest = static_cast<int>(simd_level());
    setenv("LOIPE_SIMD", kNames[std::min(level, highest)], 1);
  }
  ~ScopedSimdLevel() { unsetenv("LOIPE_SIMD"); }
};

}  // namespace

template <class E>
class AlmostLinearAttention : public ::testing::Test {};
using Elements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AlmostLinearAttention, Elements);

TYPED_TEST(AlmostLinearAttention, EqualsTheDenseEvaluationOnEveryInstructionSet) {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Rng rng(seed);
    const ScopedSimdLevel level(static_cast<int>(seed % 3));
    LinearCase<TypeParam> l = random_linear_case<TypeParam>(rng);
    LinearResults<TypeParam> got(l.c), expected(l.c);
    EXPECT_TRUE(run(l, got)) << seed;
    run_reference(l, expected);
    expect_near(got, expected, std::to_string(seed) + ": " + l.text());
  }
}

// Several chunks, several waves of them, and windows of more than one chunk.
TYPED_TEST(AlmostLinearAttention, EqualsTheDenseEvaluationOnLongSequences) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed + 1000);
    LinearCase<TypeParam> l;
    const std::int64_t kv_heads = 1 + rng.below(2), keys = 600 + rng.below(700);
    l.c.shape = {2, kv_heads, seed % 3 == 0 ? 500 + rng.below(800) : keys, keys, 1 + rng.below(5), 4};
    l.c.is_causal = seed % 4 != 3;
    l.approximation.degree = 2 + static_cast<int>(rng.below(3));
    fill(l, rng);
    LinearResults<TypeParam> got(l.c), expected(l.c);
    EXPECT_TRUE(run(l, got)) << seed;
    run_reference(l, expected);
    expect_near(got, expected, std::to_string(seed) + ": " + l.text());
  }
}

TYPED_TEST(AlmostLinearAttention, HasTheSameBitsForEveryNumberOfThreads) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    LinearCase<TypeParam> l = random_linear_case<TypeParam>(rng, 600);
    LinearResults<TypeParam> alone(l.c);
    run(l, alone);
    for (const int threads : {2, 3, 7}) {
      Threads pool{threads};
      LinearResults<TypeParam> together(l.c);
      run(l, together, pool.parallel());
      EXPECT_TRUE(alone == together) << seed << ": " << l.text() << ", " << threads << " threads";
    }
  }
}

// Each result alone has the bits that it has together with the others.
TYPED_TEST(AlmostLinearAttention, ComputesWhatIsWantedAlone) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    LinearCase<TypeParam> l = random_linear_case<TypeParam>(rng);
    LinearResults<TypeParam> all(l.c), alone(l.c);
    run(l, all), run(l, alone);
    const Problem<TypeParam> p = l.c.problem();
    const auto run_one = [&](const InputCotangents<TypeParam>& results) {
      Workspace memory(vjp_workspace(p, l.with_pointers(), 1));
      vjp<TypeParam>(p, l.with_pointers(), {all.o.rows(), all.denominator.rows()}, l.c.cotangents(), results,
                     {}, memory.bytes());
    };
    for (Array<TypeParam>* array : {&alone.q, &alone.k, &alone.v}) array->fill([](auto...) { return 7; });
    run_one({alone.q.rows(), {}, {}, {}}), run_one({{}, alone.k.rows(), {}, {}});
    run_one({{}, {}, alone.v.rows(), {}});
    EXPECT_TRUE(all == alone) << seed << ": " << l.text();
  }
}

// The consistent derivatives are those of what forward computes, centre, window, lse and all.
TEST(AlmostLinearGradient, EqualsDifferencesOfTheForwardPass) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    LinearCase<double> l = random_linear_case<double>(rng, 90);
    l.approximation.gradient = Gradient::consistent;
    LinearResults<double> r(l.c);
    run(l, r);
    const auto is_masked = [&](const Array<double>& x, std::int64_t h, std::int64_t i, std::int64_t c) {
      return std::isnan(x.at(h, i, c));
    };
    const auto product = [&](const Array<double>& a, const Array<double>& b, const Array<double>& primal) {
      double sum = 0;
      for (std::int64_t h = 0; h < a.heads(); ++h)
        for (std::int64_t i = 0; i < a.row_count(); ++i)
          for (std::int64_t c = 0; c < a.columns(); ++c)
            if (!is_masked(primal, h, i, c) && std::isfinite(b.at(h, i, c)))
              sum += a.at(h, i, c) * b.at(h, i, c);
      return sum;
    };
    const auto loss_at = [&](double step) {
      LinearCase<double> moved = l;
      const auto move = [&](Array<double>& x, const Array<double>& tangent) {
        x.fill([&](std::int64_t h, std::int64_t i, std::int64_t c) {
          return is_masked(x, h, i, c) ? x.at(h, i, c) : x.at(h, i, c) + step * tangent.at(h, i, c);
        });
      };
      move(moved.c.q, l.c.tq), move(moved.c.k, l.c.tk), move(moved.c.v, l.c.tv);
      LinearResults<double> at(moved.c);
      run(moved, at);
      return product(l.c.g, at.o, at.o) + product(l.c.glse, at.lse, at.lse);
    };
    constexpr double kStep = 1e-5;
    const double differences = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    const double derivative =
        product(l.c.tq, r.q, l.c.q) + product(l.c.tk, r.k, l.c.k) + product(l.c.tv, r.v, l.c.v);
    EXPECT_NEAR(derivative, differences, 1e-6 * (1 + std::abs(differences))) << seed << ": " << l.text();
  }
}

// All weights 0: the guard takes the place of the denominator, which then passes no derivative.
TYPED_TEST(AlmostLinearAttention, GuardsDenominators) {
  using E = TypeParam;
  Rng rng(3);
  LinearCase<E> l;
  l.c.shape = {4, 2, 70, 90, 5, 3};
  l.approximation.degree = 2;
  attention::testing::fill(l.c, rng);
  l.coefficients.assign(6, 0);
  l.c.g.fill([](auto...) { return 0; });
  LinearResults<E> got(l.c), expected(l.c);
  EXPECT_TRUE(run(l, got));
  run_reference(l, expected);
  expect_near(got, expected, "all 0");
  EXPECT_EQ(got.guarded, (std::vector<std::int64_t>{140, 140}));
  EXPECT_EQ(got.denominator.at(0, 0, 0), static_cast<double>(std::numeric_limits<E>::min()));
  // Below 0 as well: P(x) = 1 - 4 x^2.
  for (std::size_t h = 0; h < 2; ++h) l.coefficients[3 * h] = 1, l.coefficients[3 * h + 2] = -4;
  run(l, got), run_reference(l, expected);
  EXPECT_EQ(got.guarded, expected.guarded);
  EXPECT_GT(got.guarded[0], 0);
}

TEST(AlmostLinearFeatures, AreCounted) {
  EXPECT_EQ(feature_count(16, 2), 153);
  EXPECT_EQ(feature_count(8, 4), 495);
  EXPECT_EQ(feature_count(32, 4), 58905);
  EXPECT_EQ(feature_count(64, 8), 11969016345);
  EXPECT_EQ(feature_count(5, 0), 1);
  EXPECT_EQ(feature_count(0, 3), 1);
  EXPECT_EQ(feature_count(1000, 100), std::numeric_limits<std::int64_t>::max());
}

// Workspaces are linear in the tokens, and do not hold all features of all tokens.
TEST(AlmostLinearWorkspace, IsLinear) {
  const auto bytes = [](std::int64_t n, std::int64_t size, int degree) {
    Problem<float> p{{4, 4, n, n, size, size}, 1, {}, {}, {}, {}};
    p.mask.is_causal = true;
    Approximation a;
    a.degree = degree;
    return std::max(forward_workspace(p, a, 2), vjp_workspace(p, a, 2));
  };
  EXPECT_LT(bytes(1 << 20, 16, 2) - bytes(1 << 19, 16, 2), std::size_t{4 * 16 * 4} << 19);
  EXPECT_LT(bytes(1 << 20, 16, 2), std::size_t{100} << 20);
  EXPECT_LT(bytes(1 << 16, 32, 4), std::size_t{300} << 20);
}

}  // namespace loipe::attention::almost_linear::testing
