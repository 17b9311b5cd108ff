// SPDX-License-Identifier: Apache-2.0
// Clusters chosen by importance over all queries, and derivatives corrected by sampled ones.
#include <cmath>

#include "attention/clustered_run.h"
#include "attention/reference/reference_attention.h"

namespace loipe::attention::testing {

namespace {

/// Keys that no clusters suit, and cotangents of very different sizes.
Case<double> uneven_case(bool is_causal) {
  Rng rng(4);
  Case<double> c;
  c.shape = {2, 1, 250, 220, 8, 8};
  c.is_causal = is_causal;
  fill(c, rng);
  for (std::int64_t i = 0; i < c.shape.queries; ++i) {
    const double size = std::exp(1.5 * rng.normal());
    for (std::int64_t h = 0; h < c.shape.heads; ++h) {
      for (std::int64_t x = 0; x < c.shape.value_size; ++x) set(c.g.rows(), h, i, x, size * c.g.at(h, i, x));
      set(c.glse.rows(), h, i, 0, 0.2 * size * c.glse.at(h, i, 0));
    }
  }
  return c;
}

Results<double> exact_results(const Case<double>& c) {
  Results<double> exact(c);
  reference::forward<double>(c.problem(), {exact.o.rows(), exact.lse.rows()});
  reference::vjp<double>(c.problem(), c.cotangents(), {exact.q.rows(), exact.k.rows(), exact.v.rows()});
  return exact;
}

/// Over all entries: body(h, i, x).
template <class Body>
void for_each_entry(const Array<double>& array, Body&& body) {
  for (std::int64_t h = 0; h < array.heads(); ++h)
    for (std::int64_t i = 0; i < array.row_count(); ++i)
      for (std::int64_t x = 0; x < array.columns(); ++x) body(h, i, x);
}

double relative_error(const Array<double>& got, const Array<double>& exact) {
  double error = 0, size = 0;
  for_each_entry(exact, [&](auto... at) {
    error += std::pow(got.at(at...) - exact.at(at...), 2), size += std::pow(exact.at(at...), 2);
  });
  return std::sqrt(error / size);
}

/// How far the mean of a derivative over seeds is from the exact one, in standard errors of that mean.
class MeanOverSeeds {
 public:
  explicit MeanOverSeeds(const Array<double>& exact)
      : exact_(exact),
        sums_(static_cast<std::size_t>(exact.heads() * exact.row_count() * exact.columns())),
        squares_(sums_.size()) {}
  void add(const Array<double>& got) {
    std::size_t n = 0;
    for_each_entry(exact_, [&](auto... at) {
      const double error = got.at(at...) - exact_.at(at...);
      sums_[n] += error, squares_[n++] += error * error;
    });
    ++count_;
  }
  double standard_errors() const {
    double bias = 0, variance = 0;
    for (std::size_t n = 0; n < sums_.size(); ++n) {
      const double mean = sums_[n] / count_;
      bias += mean * mean, variance += (squares_[n] / count_ - mean * mean) / (count_ - 1);
    }
    return std::sqrt(bias / variance);
  }

 private:
  const Array<double>& exact_;
  std::vector<double> sums_, squares_;
  double count_ = 0;
};

}  // namespace

// Clusters that differ from seed to seed are no reason for plain approximations to be right in the mean.
TEST(ClusteredSampling, MeanOverSeedsIsTheExactDerivative) {
  for (const bool is_causal : {false, true}) {
    const Case<double> c = uneven_case(is_causal);
    const Results<double> exact = exact_results(c);
    MeanOverSeeds k(exact.k), v(exact.v), plain_k(exact.k), plain_v(exact.v);
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      Budget budget{12, 10, 0, seed, true, 0};
      Results<double> got(c);
      run_vjp(c, budget, exact.saved(), got);
      plain_k.add(got.k), plain_v.add(got.v);
      budget.sampled = 40;
      run_vjp(c, budget, exact.saved(), got);
      k.add(got.k), v.add(got.v);
    }
    EXPECT_LT(k.standard_errors(), 1.5);
    EXPECT_LT(v.standard_errors(), 1.5);
    EXPECT_GT(plain_k.standard_errors(), 4);
    EXPECT_GT(plain_v.standard_errors(), 4);
  }
}

TEST(ClusteredSampling, RowsOfSampledQueriesAreExact) {
  const Case<double> c = uneven_case(true);
  const Results<double> exact = exact_results(c);
  const auto exact_rows = [&](std::int64_t sampled) {
    Results<double> got(c);
    run_vjp(c, {12, 10, 0, 1, true, sampled}, exact.saved(), got);
    std::int64_t rows = 0;
    // The first block of a causal head sees all its keys anyway.
    for (std::int64_t h = 0; h < c.shape.heads; ++h)
      for (std::int64_t i = 100; i < c.shape.queries; ++i) {
        double error = 0, size = 0;
        for (std::int64_t x = 0; x < c.shape.head_size; ++x) {
          error = std::max(error, std::abs(got.q.at(h, i, x) - exact.q.at(h, i, x)));
          size = std::max(size, std::abs(exact.q.at(h, i, x)));
        }
        rows += error < 1e-9 * size;
      }
    return rows;
  };
  // Of each of two heads, of which three fifths lie in what is counted.
  const std::int64_t more = exact_rows(50) - exact_rows(0);
  EXPECT_GT(more, 30);
  EXPECT_LE(more, 70);
}

TEST(ClusteredSampling, ChoiceByImportanceErrsLessWhereCotangentsDiffer) {
  const Case<double> c = uneven_case(false);
  const Results<double> exact = exact_results(c);
  Results<double> by_query(c), by_importance(c);
  run_vjp(c, {20, 30, 0, 1}, exact.saved(), by_query);
  run_vjp(c, {20, 30, 0, 1, true}, exact.saved(), by_importance);
  EXPECT_LT(relative_error(by_importance.q, exact.q), 0.7 * relative_error(by_query.q, exact.q));
  EXPECT_LT(relative_error(by_importance.v, exact.v), relative_error(by_query.v, exact.v));
}

TEST(ClusteredSampling, EnoughKeysAreExactAndNoneAreMeansAlone) {
  for (const bool is_causal : {false, true}) {
    const Case<double> c = uneven_case(is_causal);
    const Results<double> exact = exact_results(c);
    Results<double> got(c), none(c), none_by_query(c);
    run_vjp(c, {12, c.shape.keys, 0, 1, true, 30}, exact.saved(), got);
    EXPECT_LT(relative_error(got.q, exact.q), 1e-10);
    EXPECT_LT(relative_error(got.k, exact.k), 1e-10);
    EXPECT_LT(relative_error(got.v, exact.v), 1e-10);
    run_vjp(c, {12, 0, 0, 1, true}, exact.saved(), none);
    run_vjp(c, {12, 0, 0, 1}, exact.saved(), none_by_query);
    EXPECT_LT(relative_error(none.k, none_by_query.k), 1e-12);
  }
}

TEST(ClusteredSampling, ScaleOfCotangentsChangesNoChoice) {
  Case<double> c = uneven_case(true);
  const Results<double> exact = exact_results(c);
  const Budget budget{12, 20, 0, 2, true, 30};
  Results<double> once(c), scaled(c);
  run_vjp(c, budget, exact.saved(), once);
  for (Array<double>* array : {&c.g, &c.glse})
    array->fill([&](std::int64_t h, std::int64_t i, std::int64_t x) { return -8 * array->at(h, i, x); });
  run_vjp(c, budget, exact.saved(), scaled);
  for (const auto& [a, b] : {std::pair{&once.q, &scaled.q}, {&once.k, &scaled.k}, {&once.v, &scaled.v}}) {
    a->fill([&](std::int64_t h, std::int64_t i, std::int64_t x) { return -8 * a->at(h, i, x); });
    EXPECT_LT(deviation(*b, *a), 1e-12);
  }
}

TEST(ClusteredSampling, HasTheSameBitsForEveryNumberOfThreads) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Rng rng(seed);
    const auto c = clustered_case<float>(rng, 500);
    const Budget budget{1 + rng.below(40), 1 + rng.below(80), seed % 3 == 0 ? 20 : 0, seed, true, 40};
    Results<float> alone(c);
    reference::forward<float>(c.problem(), {alone.o.rows(), alone.lse.rows()});
    run_vjp(c, budget, alone.saved(), alone);
    for (const int threads : {2, 5}) {
      Threads pool{threads};
      Results<float> together(c);
      run_vjp(c, budget, alone.saved(), together, pool.parallel());
      EXPECT_TRUE(alone.q == together.q && alone.k == together.k && alone.v == together.v)
          << seed << ": " << c.text() << ", " << threads << " threads";
    }
  }
}

}  // namespace loipe::attention::testing
