// SPDX-License-Identifier: Apache-2.0
// The kernels against the reference on random shapes, masks and strides.
#include <gtest/gtest.h>

#include <numbers>

#include "attention/attention_case.h"
#include "attention/exact/attention.h"
#include "attention/reference/reference_attention.h"
#include "attention/threads_and_memory.h"
#include "base/simd_level.h"

namespace loipe::attention::testing {

namespace {

/// What a computation writes.
template <class E>
struct Results {
  using T = Accumulator<E>;
  Array<E> o, q, k, v;
  Array<T> lse, statistics;
  std::vector<T> bias;

  explicit Results(const Case<E>& c) {
    Rng rng(static_cast<std::uint64_t>(c.shape.queries * 31 + c.shape.keys));
    const Shape& s = c.shape;
    o = Array<E>(s.heads, s.queries, s.value_size, rng), q = Array<E>(s.heads, s.queries, s.head_size, rng);
    k = Array<E>(s.kv_heads, s.keys, s.head_size, rng), v = Array<E>(s.kv_heads, s.keys, s.value_size, rng);
    lse = Array<T>(s.heads, s.queries, 1, rng), statistics = Array<T>(s.heads, s.queries, kStatistics, rng);
    bias.resize(c.bias.size());
  }
  InputCotangents<E> inputs(const Case<E>& c) {
    return {q.rows(), k.rows(), v.rows(), c.with_strides_of_bias(bias)};
  }
};

enum class Kind { forward, vjp, vjp_alone, jvp, vjp_jvp };

template <class E>
void run(Kind kind, const Case<E>& c, Results<E>& r, const Parallel& parallel) {
  const Problem<E> p = c.problem();
  const auto with_workspace = [&](std::size_t bytes, auto&& body) {
    Workspace workspace(bytes);
    body(workspace.bytes());
    EXPECT_TRUE(workspace.is_whole());
  };
  if (kind == Kind::forward || kind == Kind::vjp)
    with_workspace(forward_workspace(p, parallel.threads), [&](auto bytes) {
      forward<E>(p, {r.o.rows(), r.lse.rows(), r.statistics.rows()}, parallel, bytes);
    });
  if (kind == Kind::vjp || kind == Kind::vjp_alone)
    with_workspace(vjp_workspace(p, parallel.threads), [&](auto bytes) {
      const Saved<E> saved = kind == Kind::vjp ? Saved<E>{r.o.rows(), r.statistics.rows()} : Saved<E>{};
      vjp<E>(p, saved, c.cotangents(), r.inputs(c), parallel, bytes);
    });
  if (kind == Kind::jvp)
    with_workspace(jvp_workspace(p, parallel.threads),
                   [&](auto bytes) { jvp<E>(p, c.tangents(), {r.o.rows(), r.lse.rows()}, parallel, bytes); });
  if (kind == Kind::vjp_jvp)
    with_workspace(vjp_jvp_workspace(p, parallel.threads), [&](auto bytes) {
      vjp_jvp<E>(p, c.cotangents(), c.tangents(), c.cotangent_tangents(), r.inputs(c), parallel, bytes);
    });
}

template <class E>
void run_reference(Kind kind, const Case<E>& c, Results<E>& r) {
  const Problem<E> p = c.problem();
  if (kind == Kind::forward || kind == Kind::vjp) reference::forward<E>(p, {r.o.rows(), r.lse.rows()});
  if (kind == Kind::vjp || kind == Kind::vjp_alone) reference::vjp<E>(p, c.cotangents(), r.inputs(c));
  if (kind == Kind::jvp) reference::jvp<E>(p, c.tangents(), {r.o.rows(), r.lse.rows()});
  if (kind == Kind::vjp_jvp)
    reference::vjp_jvp<E>(p, c.cotangents(), c.tangents(), c.cotangent_tangents(), r.inputs(c));
}

template <class E>
struct Limits;
template <>
struct Limits<double> {
  static constexpr double kRelative = 1e-11;
};
template <>
struct Limits<float> {
  static constexpr double kRelative = 5e-5;
};
template <>
struct Limits<Bf16> {
  static constexpr double kRelative = 1e-2;  // results are rounded to 8 bits
};

template <class E>
void expect_near(const Results<E>& got, const Results<E>& expected, const std::string& where) {
  const double tolerance = Limits<E>::kRelative;
  EXPECT_LT(deviation(got.o, expected.o), tolerance) << "o, " << where;
  EXPECT_LT(deviation(got.lse, expected.lse), tolerance) << "lse, " << where;
  EXPECT_LT(deviation(got.q, expected.q), tolerance) << "q, " << where;
  EXPECT_LT(deviation(got.k, expected.k), tolerance) << "k, " << where;
  EXPECT_LT(deviation(got.v, expected.v), tolerance) << "v, " << where;
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < got.bias.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected.bias[i])));
    difference = std::max(difference, std::abs(static_cast<double>(got.bias[i] - expected.bias[i])));
  }
  EXPECT_LE(difference, tolerance * largest) << "bias, " << where;
  EXPECT_EQ(got.q.written(), expected.q.written()) << where;
  EXPECT_EQ(got.k.written(), expected.k.written()) << where;
  EXPECT_EQ(got.v.written(), expected.v.written()) << where;
  EXPECT_EQ(got.o.written(), expected.o.written()) << where;
}

template <class E>
bool have_same_bits(const Results<E>& a, const Results<E>& b) {
  return a.o == b.o && a.lse == b.lse && a.statistics == b.statistics && a.q == b.q && a.k == b.k &&
         a.v == b.v && a.bias == b.bias;
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

constexpr Kind kKinds[] = {Kind::forward, Kind::vjp, Kind::vjp_alone, Kind::jvp, Kind::vjp_jvp};

}  // namespace

template <class E>
class ExactAttention : public ::testing::Test {};
using Elements = ::testing::Types<float, double, Bf16>;
TYPED_TEST_SUITE(ExactAttention, Elements);

TYPED_TEST(ExactAttention, EqualsTheReferenceOnEveryInstructionSet) {
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (const Kind kind : kKinds) {
      Rng rng(seed);
      const ScopedSimdLevel level(static_cast<int>(seed % 3));
      const Case<TypeParam> c = random_case<TypeParam>(rng);
      Results<TypeParam> got(c), expected(c);
      run(kind, c, got, {});
      run_reference(kind, c, expected);
      expect_near(got, expected,
                  std::to_string(seed) + ": " + c.text() + " kind " + std::to_string(static_cast<int>(kind)));
    }
}

// Rows enough that the derivatives go through several chunks of queries.
TYPED_TEST(ExactAttention, EqualsTheReferenceOnManyQueries) {
  for (const Kind kind : {Kind::vjp, Kind::vjp_jvp}) {
    Rng rng(7);
    Case<TypeParam> c;
    c.shape = {2, 1, 1500, 300, 64, 56};
    c.is_causal = true;
    fill(c, rng);
    Results<TypeParam> got(c), expected(c);
    run(kind, c, got, {});
    run_reference(kind, c, expected);
    expect_near(got, expected, "kind " + std::to_string(static_cast<int>(kind)));
  }
}

// In f32, keys, values or logits that share an offset cost no digits.
TEST(ExactAttentionAccuracy, OffsetsCostNoDigits) {
  const auto deviation_of_dq = [](double key_offset, double value_offset, double value_spread) {
    Rng rng(11);
    Case<float> c;
    c.shape = {2, 2, 130, 130, 16, 16};
    c.is_causal = true;
    fill(c, rng);
    c.k.fill_normal(rng, 1, key_offset);
    c.v.fill_normal(rng, value_spread, value_offset);
    c.glse.fill([](auto...) { return 0; });
    Results<float> got(c), expected(c);
    run(Kind::vjp, c, got, {});
    run_reference(Kind::vjp, c, expected);
    EXPECT_LT(deviation(got.o, expected.o), 1e-6);
    EXPECT_LT(deviation(got.k, expected.k), 2e-6);
    return deviation(got.q, expected.q);
  };
  EXPECT_LT(deviation_of_dq(50, 0, 1), 2e-6);
  EXPECT_LT(deviation_of_dq(0, 1e6, 1e4), 2e-6);
  EXPECT_LT(deviation_of_dq(1000, 1000, 1), 2e-6);
}

// Weights of sharp heads go down to where numbers are subnormal and beyond: there they are 0.
TYPED_TEST(ExactAttention, EqualsTheReferenceOnSharpHeads) {
  for (const Kind kind : kKinds)
    for (const int level : {0, 1, 2}) {
      const ScopedSimdLevel scoped(level);
      Rng rng(5);
      Case<TypeParam> c;
      c.shape = {2, 2, 70, 130, 16, 16};
      fill(c, rng);
      c.scale = 8;  // a spread of 32, of some 100 between the ends of a row
      Results<TypeParam> got(c), expected(c);
      run(kind, c, got, {});
      run_reference(kind, c, expected);
      expect_near(got, expected, "kind " + std::to_string(static_cast<int>(kind)));
    }
}

// The first logit is `below` above all others, which have nothing of dV where their weights are negligible.
template <class E>
double largest_value_derivative_of_others(double below) {
  Rng rng(3);
  Case<E> c;
  c.shape = {1, 1, 40, 40, 8, 8};
  fill(c, rng);
  c.scale = 1;
  c.q.fill([](auto, auto, std::int64_t column) { return column == 0 ? 1.0 : 0.0; });
  c.k.fill([&](auto, std::int64_t j, auto) { return j == 0 ? below * std::numbers::ln2 : 0.0; });
  Results<E> r(c);
  run(Kind::vjp, c, r, {});
  double largest = 0;
  for (std::int64_t j = 1; j < 40; ++j)
    for (std::int64_t column = 0; column < 8; ++column)
      largest = std::max(largest, std::abs(r.v.at(0, j, column)));
  return largest;
}

TEST(ExactAttentionAccuracy, NegligibleWeightsAreZero) {
  EXPECT_GT(largest_value_derivative_of_others<float>(62), 0);
  EXPECT_EQ(largest_value_derivative_of_others<float>(66), 0);
  EXPECT_GT(largest_value_derivative_of_others<double>(500), 0);
  EXPECT_EQ(largest_value_derivative_of_others<double>(520), 0);
}

TYPED_TEST(ExactAttention, HasTheSameBitsForEveryNumberOfThreads) {
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const Kind kind : kKinds) {
      Rng rng(seed);
      const Case<TypeParam> c = random_case<TypeParam>(rng, 400);
      Results<TypeParam> alone(c);
      run(kind, c, alone, {});
      for (const int threads : {2, 3, 7}) {
        Threads pool{threads};
        Results<TypeParam> together(c);
        run(kind, c, together, pool.parallel());
        EXPECT_TRUE(have_same_bits(alone, together))
            << seed << ": " << c.text() << ", " << threads << " threads";
      }
    }
}

}  // namespace loipe::attention::testing
