// SPDX-License-Identifier: Apache-2.0
// Clustered attention against its definition, and against exact attention where it must equal it.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "attention/clustered_oracle.h"
#include "attention/clustered_run.h"
#include "attention/reference/reference_attention.h"

namespace loipe::attention::testing {

namespace {

Budget random_budget(Rng& rng, std::int64_t keys) {
  return {1 + rng.below(keys + 10), rng.below(keys + 10), rng.chance(0.3) ? 1 + rng.below(50) : 0,
          rng.next()};
}

template <class E>
void expect_partition(const Case<E>& c, const Choice& choice, std::int64_t kh) {
  std::multiset<std::int64_t> members, allowed;
  for (const auto& cluster : choice.members) members.insert(cluster.begin(), cluster.end());
  for (std::int64_t j = 0; j < c.shape.keys; ++j)
    if (is_allowed(c.mask(), kh, 0, j)) allowed.insert(j);
  EXPECT_EQ(members, allowed) << c.text();
}

/// Base 2, by the definition.
template <class E>
double rank_of(const Case<E>& c, const Choice& choice, std::int64_t kh, std::size_t row,
               std::size_t cluster) {
  const Shape& s = c.shape;
  const std::int64_t h = kh * s.readers() + static_cast<std::int64_t>(row) / s.queries,
                     i = static_cast<std::int64_t>(row) % s.queries;
  const auto mean = mean_row(c.problem().k, kh, choice.members[cluster], s.head_size);
  const auto shift = mean_of_allowed(c.problem(), kh);
  double rank = choice.rank[cluster];
  for (std::int64_t x = 0; x < s.head_size; ++x)
    rank += c.scale / std::log(2) * c.q.at(h, i, x) *
            (mean[static_cast<std::size_t>(x)] - shift[static_cast<std::size_t>(x)]);
  return rank;
}

template <class E>
void expect_best_taken(const Case<E>& c, const Choice& choice, std::int64_t kh, std::size_t row,
                       std::int64_t wanted) {
  std::vector<std::pair<double, std::int64_t>> taken;  // rank and keys
  double best_left = -1e30, high = -1e30, low = 1e30;
  std::int64_t keys = 0, all = 0;
  for (std::size_t cluster = 0; cluster < choice.members.size(); ++cluster) {
    const auto size = static_cast<std::int64_t>(choice.members[cluster].size());
    if (size == 0) continue;
    const double rank = rank_of(c, choice, kh, row, cluster);
    high = std::max(high, rank), low = std::min(low, rank), all += size;
    if (!choice.taken[row][cluster]) {
      best_left = std::max(best_left, rank);
      continue;
    }
    taken.emplace_back(rank, size);
    keys += size;
  }
  const double close = 5e-4 * (1 + high - low);  // thresholds lie on a grid
  double last = 1e30;
  for (const auto& [rank, size] : taken) last = std::min(last, rank);
  std::int64_t surely = 0;  // keys of those above the last one taken
  for (const auto& [rank, size] : taken) surely += rank > last + close ? size : 0;
  EXPECT_GE(keys, std::min(wanted, all)) << c.text();
  EXPECT_LE(best_left, last + close) << c.text();
  EXPECT_TRUE(taken.empty() || surely < wanted) << c.text();
}

template <class E>
constexpr double kTolerance = sizeof(E) == 8 ? 1e-10 : 1e-4;

}  // namespace

template <class E>
class ClusteredAttention : public ::testing::Test {};
using Elements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ClusteredAttention, Elements);

TYPED_TEST(ClusteredAttention, ForwardIsItsDefinition) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const ScopedLevel level(seed % 3);
    const auto c = clustered_case<TypeParam>(rng, 300);
    const Budget budget = random_budget(rng, c.shape.keys);
    Results<TypeParam> got(c), expected(c);
    run_forward(c, budget, got);
    oracle_forward<TypeParam>(c.problem(), budget, {expected.o.rows(), expected.lse.rows()});
    EXPECT_LT(deviation(got.o, expected.o), kTolerance<TypeParam>) << seed << ": " << c.text();
    EXPECT_LT(deviation(got.lse, expected.lse), kTolerance<TypeParam>) << seed << ": " << c.text();
    EXPECT_EQ(got.o.written(), expected.o.written()) << seed << ": " << c.text();
  }
}

// With o and lse of exact attention; and of clustered attention, whose weights sum to 1.
TYPED_TEST(ClusteredAttention, DerivativesAreTheirDefinition) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const ScopedLevel level(seed % 3);
    const auto c = clustered_case<TypeParam>(rng, 300);
    const Budget budget = random_budget(rng, c.shape.keys);
    Results<TypeParam> got(c);
    if (seed % 2 == 0) reference::forward<TypeParam>(c.problem(), {got.o.rows(), got.lse.rows()});
    else run_forward(c, budget, got);
    run_vjp(c, budget, got.saved(), got);
    Gradients expected;
    oracle_vjp<TypeParam>(c.problem(), budget, got.saved(), c.cotangents(), expected);
    EXPECT_LT(distance(got.q, expected.q), kTolerance<TypeParam>) << seed << ": " << c.text();
    EXPECT_LT(distance(got.k, expected.k), kTolerance<TypeParam>) << seed << ": " << c.text();
    EXPECT_LT(distance(got.v, expected.v), kTolerance<TypeParam>) << seed << ": " << c.text();
  }
}

// Queries enough for several chunks, of several heads that read one.
TYPED_TEST(ClusteredAttention, DerivativesOfManyQueriesAreTheirDefinition) {
  for (const bool is_causal : {false, true}) {
    Rng rng(9);
    Case<TypeParam> c;
    c.shape = {16, 2, 1200, 130, 8, 16};
    c.is_causal = is_causal;
    fill(c, rng);
    const Budget budget{12, 30, is_causal ? 40 : 0, 1};
    Results<TypeParam> got(c), expected(c);
    run_forward(c, budget, got);
    oracle_forward<TypeParam>(c.problem(), budget, {expected.o.rows(), expected.lse.rows()});
    EXPECT_LT(deviation(got.o, expected.o), kTolerance<TypeParam>);
    run_vjp(c, budget, got.saved(), got);
    Gradients gradients;
    oracle_vjp<TypeParam>(c.problem(), budget, got.saved(), c.cotangents(), gradients);
    EXPECT_LT(distance(got.q, gradients.q), kTolerance<TypeParam>);
    EXPECT_LT(distance(got.k, gradients.k), kTolerance<TypeParam>);
    EXPECT_LT(distance(got.v, gradients.v), kTolerance<TypeParam>);
  }
}

// Enough exact keys, or a cluster for each key: nothing is left to approximate.
TYPED_TEST(ClusteredAttention, IsExactWithEnoughKeysOrClusters) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    const ScopedLevel level(seed % 3);
    const auto c = clustered_case<TypeParam>(rng, 250);
    const Budget budget = seed % 2 == 0 ? Budget{1 + rng.below(20), c.shape.keys, 0, seed}
                                        : Budget{c.shape.keys, rng.below(20), 0, seed};
    Results<TypeParam> got(c), expected(c);
    run_forward(c, budget, got);
    reference::forward<TypeParam>(c.problem(), {expected.o.rows(), expected.lse.rows()});
    reference::vjp<TypeParam>(c.problem(), c.cotangents(),
                              {expected.q.rows(), expected.k.rows(), expected.v.rows()});
    run_vjp(c, budget, expected.saved(), got);
    const double tolerance = sizeof(TypeParam) == 8 ? 1e-9 : 5e-4;
    for (const auto& [a, b] : {std::pair{&got.o, &expected.o}, std::pair{&got.q, &expected.q},
                               std::pair{&got.k, &expected.k}, std::pair{&got.v, &expected.v}}) {
      EXPECT_LT(deviation(*a, *b), tolerance) << seed << ": " << c.text();
      EXPECT_EQ(a->written(), b->written()) << seed << ": " << c.text();
    }
    EXPECT_LT(deviation(got.lse, expected.lse), tolerance) << seed << ": " << c.text();
  }
}

// Every allowed key is in one cluster; queries take the clusters of highest rank, no more than the budget
// wants.
TYPED_TEST(ClusteredAttention, ChoosesTheBestClustersUpToTheBudget) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    auto c = clustered_case<TypeParam>(rng, 250);
    c.is_causal = false;
    const Budget budget{1 + rng.below(40), rng.below(c.shape.keys + 1), 0, seed};
    for (std::int64_t kh = 0; kh < c.shape.kv_heads; ++kh) {
      const Choice choice = choose(c.problem(), budget, kh);
      if (c.shape.queries > 0) expect_partition(c, choice, kh);
      for (std::size_t row = 0; row < choice.taken.size(); ++row)
        expect_best_taken(c, choice, kh, row, budget.exact_keys);
    }
  }
}

TYPED_TEST(ClusteredAttention, HasTheSameBitsForEveryNumberOfThreads) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Rng rng(seed);
    const auto c = clustered_case<TypeParam>(rng, 500);
    const Budget budget{1 + rng.below(40), 1 + rng.below(80), seed % 3 == 0 ? 20 : 0, seed};
    Results<TypeParam> alone(c);
    run_forward(c, budget, alone);
    run_vjp(c, budget, alone.saved(), alone);
    for (const int threads : {2, 5}) {
      Threads pool{threads};
      Results<TypeParam> together(c);
      run_forward(c, budget, together, pool.parallel());
      run_vjp(c, budget, together.saved(), together, pool.parallel());
      EXPECT_TRUE(alone.o == together.o && alone.lse == together.lse && alone.q == together.q &&
                  alone.k == together.k && alone.v == together.v)
          << seed << ": " << c.text() << ", " << threads << " threads";
    }
  }
}

// All queries sampled: the pilot's errors are those of dQ itself.
TYPED_TEST(ClusteredAttention, PilotOfAllRowsIsTheErrorOfDq) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    const ScopedLevel level(seed % 3);
    const auto c = clustered_case<TypeParam>(rng, 250);
    const std::int64_t clusters = 1 + rng.below(30);
    const std::int64_t window = seed % 3 == 0 ? 9 : 0;
    std::vector<Budget> budgets{
        {clusters, 0, window, seed}, {clusters, 20, window, seed}, {clusters, 60, window, seed}};
    for (Budget& budget : budgets) budget.is_by_importance = seed % 2 == 1;
    Results<TypeParam> exact(c);
    reference::forward<TypeParam>(c.problem(), {exact.o.rows(), exact.lse.rows()});
    reference::vjp<TypeParam>(c.problem(), c.cotangents(), {exact.q.rows(), exact.k.rows(), exact.v.rows()});
    std::vector<double> numbers, errors(budgets.size(), -1.0);
    for (std::int64_t h = 0; h < c.shape.heads; ++h)
      for (std::int64_t i = 0; i < c.shape.queries; ++i)
        for (std::int64_t x = 0; x < c.shape.head_size; ++x) numbers.push_back(exact.q.at(h, i, x));
    const clustered::Pilot pilot{c.shape.queries, seed};
    Workspace memory(clustered::pilot_workspace<TypeParam>(c.problem(), budgets, pilot, 1));
    clustered::pilot<TypeParam>(c.problem(), budgets, pilot, exact.saved(), c.cotangents(), errors, {},
                                memory.bytes());
    EXPECT_TRUE(memory.is_whole());
    for (std::size_t b = 0; b < budgets.size(); ++b) {
      Results<TypeParam> got(c);
      run_vjp(c, budgets[b], exact.saved(), got);
      EXPECT_NEAR(errors[b], distance(got.q, numbers), 1e-3 * errors[b] + kTolerance<TypeParam>)
          << seed << ": " << c.text() << " budget " << b;
    }
  }
}

TEST(ClusteredAttentionCorners, EqualKeysAndEmptyShapesAndAbsentResults) {
  for (const Shape& shape : {Shape{2, 2, 0, 5, 8, 8}, Shape{2, 2, 5, 0, 8, 8}, Shape{0, 0, 5, 5, 8, 8},
                             Shape{2, 1, 1, 1, 8, 8}, Shape{4, 2, 150, 150, 8, 16}}) {
    Rng rng(3);
    Case<double> c;
    c.shape = shape;
    c.is_causal = shape.queries == 150;
    fill(c, rng);
    c.k.fill([](auto...) { return 0.5; });
    Results<double> got(c), expected(c);
    const Budget budget{16, 4, 0, 1};
    run_forward(c, budget, got);
    reference::forward<double>(c.problem(), {expected.o.rows(), expected.lse.rows()});
    EXPECT_LT(deviation(got.lse, expected.lse), 1e-12);
    EXPECT_LT(deviation(got.o, expected.o), 1e-12);
    run_vjp(c, budget, expected.saved(), got);
    EXPECT_EQ(got.k.written(), shape.kv_heads * shape.keys * shape.head_size);
    Workspace memory(clustered::vjp_workspace(c.problem(), budget, 1));
    Results<double> alone(c);
    clustered::vjp<double>(c.problem(), budget, expected.saved(), c.cotangents(), {{}, alone.k.rows(), {}},
                           {}, memory.bytes());
    EXPECT_TRUE(alone.k == got.k);
    EXPECT_EQ(alone.q.written() + alone.v.written(), 0);
  }
}

TEST(ClusteredAttentionCorners, DerivativesAreLinearInTheCotangents) {
  Rng rng(5);
  Case<double> c;
  c.shape = {2, 1, 200, 180, 16, 8};
  fill(c, rng);
  const Budget budget{20, 30, 0, 2};
  Results<double> exact(c), once(c), twice(c);
  reference::forward<double>(c.problem(), {exact.o.rows(), exact.lse.rows()});
  run_vjp(c, budget, exact.saved(), once);
  for (Array<double>* array : {&c.g, &c.glse})
    array->fill([&](std::int64_t h, std::int64_t i, std::int64_t x) { return -8 * array->at(h, i, x); });
  run_vjp(c, budget, exact.saved(), twice);
  for (const auto& [a, b] : {std::pair{&once.q, &twice.q}, {&once.k, &twice.k}, {&once.v, &twice.v}}) {
    a->fill([&](std::int64_t h, std::int64_t i, std::int64_t x) { return -8 * a->at(h, i, x); });
    EXPECT_LT(deviation(*b, *a), 1e-14);
  }
}

TEST(ClusteredAttentionCorners, CostGrowsWithTheBudgetAndFallsWithTheLength) {
  const Shape shape{12, 12, 4096, 4096, 32, 32};
  const double small = clustered::relative_cost(shape, false, {64, 200, 0, 0});
  EXPECT_LT(small, clustered::relative_cost(shape, false, {64, 800, 0, 0}));
  EXPECT_LT(small, clustered::relative_cost(shape, false, {128, 200, 0, 0}));
  EXPECT_LT(small, clustered::relative_cost(shape, true, {64, 200, 0, 0}));
  EXPECT_GT(small, clustered::relative_cost({12, 12, 16384, 16384, 32, 32}, false, {64, 200, 0, 0}));
}

}  // namespace loipe::attention::testing
