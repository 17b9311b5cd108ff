// SPDX-License-Identifier: Apache-2.0
// Statistics of heads against all pairs, one by one.
#include "attention/statistics/statistics.h"

#include <gtest/gtest.h>

#include <vector>

#include "attention/attention_case.h"

namespace loipe::attention::testing {

namespace {

using statistics::HeadStatistics;
using statistics::Options;

struct Found {
  std::vector<HeadStatistics> heads;
  std::vector<double> basis;
};

template <class E>
Found statistics_of(const Case<E>& c, const Parallel& parallel = {}, Options options = {}) {
  const Shape& s = c.shape;
  Found found;
  found.heads.resize(static_cast<std::size_t>(s.kv_heads));
  found.basis.resize(static_cast<std::size_t>(s.kv_heads * s.head_size * s.head_size));
  std::vector<std::byte> memory(statistics::statistics_workspace(c.problem(), parallel.threads) + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  statistics::statistics(c.problem(), options, found.heads, found.basis.data(), parallel,
                         std::span(memory).subspan((64 - address % 64) % 64));
  return found;
}

/// Queries of all readers and centred allowed keys of one head, in f64.
struct Vectors {
  std::vector<std::vector<double>> q, k, v;
};
template <class E>
Vectors vectors_of(const Case<E>& c, std::int64_t kh) {
  const Shape& s = c.shape;
  Vectors out;
  for (std::int64_t h = kh * s.readers(); h < (kh + 1) * s.readers(); ++h)
    for (std::int64_t i = 0; i < s.queries; ++i) {
      out.q.emplace_back();
      for (std::int64_t x = 0; x < s.head_size; ++x) out.q.back().push_back(c.q.at(h, i, x));
    }
  const auto centred = [&](const Array<E>& from, std::int64_t columns) {
    std::vector<std::vector<double>> rows;
    std::vector<double> mean(static_cast<std::size_t>(columns));
    for (std::int64_t j = 0; j < s.keys; ++j) {
      if (!c.key_mask.empty() && !c.key_mask[static_cast<std::size_t>(kh * c.key_mask_head_stride + j)])
        continue;
      rows.emplace_back();
      for (std::int64_t x = 0; x < columns; ++x) rows.back().push_back(from.at(kh, j, x));
      for (std::size_t x = 0; x < mean.size(); ++x) mean[x] += rows.back()[x];
    }
    for (auto& row : rows)
      for (std::size_t x = 0; x < mean.size(); ++x) row[x] -= mean[x] / static_cast<double>(rows.size());
    return rows;
  };
  out.k = centred(c.k, s.head_size), out.v = centred(c.v, s.value_size);
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Coordinates in the first `rank` columns of the basis of a head.
std::vector<double> projected(const std::vector<double>& x, const double* basis, std::int64_t rank) {
  std::vector<double> out(static_cast<std::size_t>(rank));
  for (std::size_t a = 0; a < x.size(); ++a)
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += x[a] * basis[a * x.size() + c];
  return out;
}

template <class E>
void expect_right(const Case<E>& c, const Found& found) {
  const double tolerance = sizeof(E) == 4 ? 1e-4 : 1e-10;
  for (std::int64_t kh = 0; kh < c.shape.kv_heads; ++kh) {
    const HeadStatistics& head = found.heads[static_cast<std::size_t>(kh)];
    const double* const basis = found.basis.data() + kh * c.shape.head_size * c.shape.head_size;
    const Vectors v = vectors_of(c, kh);
    double squares = 0, largest = 0, rest = 0, rest_squares = 0, value = 0;
    for (const auto& q : v.q)
      for (const auto& k : v.k) {
        const double x = c.scale * dot(q, k);
        const double off = x - c.scale * dot(projected(q, basis, head.rank), projected(k, basis, head.rank));
        squares += x * x, largest = std::max(largest, std::abs(x));
        rest = std::max(rest, std::abs(off)), rest_squares += off * off;
      }
    for (const auto& row : v.v) value = std::max(value, std::sqrt(dot(row, row)));
    const double pairs = static_cast<double>(v.q.size() * v.k.size());
    EXPECT_EQ(head.keys, static_cast<std::int64_t>(v.k.size())) << c.text();
    EXPECT_NEAR(head.value_norm, value, tolerance * (value + 10)) << c.text();
    if (pairs == 0) {
      EXPECT_EQ(head.logit_spread, 0) << c.text();
      continue;
    }
    const double spread = std::sqrt(squares / pairs), rounding = tolerance * (head.logit_bound + 1e-3);
    EXPECT_NEAR(head.logit_spread, spread, rounding) << c.text();
    EXPECT_GE(head.logit_bound + rounding, largest) << c.text();
    EXPECT_LE(head.largest_logit, largest + rounding) << c.text();
    if (c.shape.queries <= 32 && c.shape.keys <= 256) {
      EXPECT_NEAR(head.largest_logit, largest, rounding) << c.text();
    }
    EXPECT_GE(head.projection_bound + rounding, rest) << c.text();
    if (spread < 1e-3) continue;
    EXPECT_LE(rest_squares, (1e-3 + tolerance) * squares * 1.01) << c.text() << head.rank;
    EXPECT_NEAR(head.lost_energy, rest_squares / squares, tolerance * 10) << c.text();
  }
}

TEST(AttentionStatistics, AreThoseOfAllPairs) {
  Rng rng(1);
  for (int round = 0; round < 60; ++round) {
    auto c = random_case<double>(rng, 60);
    expect_right(c, statistics_of(c));
    auto f = random_case<float>(rng, 60);
    expect_right(f, statistics_of(f));
  }
}

/// Queries, or keys, or both lie in few directions up to a little noise. A rank below the head size is one
/// that derivatives by both can live with, as that by queries is made of keys and the other way round.
TEST(AttentionStatistics, RankOfLowRankHeads) {
  Rng rng(2);
  for (const bool queries : {false, true})
    for (const bool keys : {false, true}) {
      Case<double> c;
      c.shape = {2, 1, 300, 400, 24, 8};
      fill(c, rng, 3);
      std::vector<double> directions(5 * 24);
      for (double& x : directions) x = rng.normal();
      const auto flatten = [&](Array<double>& array) {
        for (std::int64_t h = 0; h < array.heads(); ++h)
          for (std::int64_t i = 0; i < array.row_count(); ++i) {
            double weights[5];
            for (double& w : weights) w = rng.normal();
            for (std::int64_t x = 0; x < 24; ++x) {
              double sum = 0.001 * rng.normal();
              for (std::int64_t r = 0; r < 5; ++r)
                sum += weights[r] * directions[static_cast<std::size_t>(r * 24 + x)];
              set(array.rows(), h, i, x, sum);
            }
          }
      };
      if (queries) flatten(c.q);
      if (keys) flatten(c.k);
      const Found found = statistics_of(c);
      expect_right(c, found);
      EXPECT_EQ(found.heads[0].rank <= 5, queries && keys) << found.heads[0].rank;
    }
}

TEST(AttentionStatistics, BasisIsOrthonormalAndColumnsAreCopied) {
  Rng rng(4);
  Case<double> c;
  c.shape = {1, 1, 200, 200, 16, 4};
  fill(c, rng);
  const Found found = statistics_of(c);
  for (std::size_t a = 0; a < 16; ++a)
    for (std::size_t b = 0; b < 16; ++b) {
      double sum = 0;
      for (std::size_t x = 0; x < 16; ++x) sum += found.basis[x * 16 + a] * found.basis[x * 16 + b];
      EXPECT_NEAR(sum, a == b, 1e-12);
    }
  std::vector<double> columns(16 * 3);
  statistics::copy_columns(found.basis.data(), 16, 3, columns.data());
  EXPECT_EQ(columns[3 * 5 + 2], found.basis[16 * 5 + 2]);
}

/// Runs tasks backwards, on threads in turn.
void backwards(void*, std::int64_t tasks, void (*body)(void*, std::int64_t, int), void* closure) {
  for (std::int64_t task = tasks; task-- > 0;) body(closure, task, static_cast<int>(task % 3));
}

TEST(AttentionStatistics, SameBitsOnAllThreads) {
  Rng rng(6);
  Case<float> c;
  c.shape = {4, 2, 5000, 5000, 8, 8};
  fill(c, rng);
  const Found one = statistics_of(c), three = statistics_of(c, {3, backwards, nullptr});
  EXPECT_EQ(one.basis, three.basis);
  for (std::size_t h = 0; h < 2; ++h) {
    EXPECT_EQ(one.heads[h].logit_spread, three.heads[h].logit_spread);
    EXPECT_EQ(one.heads[h].projection_bound, three.heads[h].projection_bound);
  }
  EXPECT_NEAR(one.heads[0].logit_spread, 1, 0.05);
}

TEST(AttentionStatistics, NotFiniteInputsShow) {
  Rng rng(7);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Case<float> c;
    c.shape = {1, 1, 70, 70, 8, 8};
    fill(c, rng);
    set(c.q.rows(), 0, 3, 2, static_cast<float>(bad));
    EXPECT_FALSE(std::isfinite(statistics_of(c).heads[0].logit_spread));
    EXPECT_FALSE(std::isfinite(statistics_of(c).heads[0].logit_bound));
    EXPECT_EQ(statistics_of(c).heads[0].rank, 8);
    fill(c, rng);
    set(c.v.rows(), 0, 3, 2, static_cast<float>(bad));
    EXPECT_FALSE(std::isfinite(statistics_of(c).heads[0].value_norm));
  }
}

}  // namespace

}  // namespace loipe::attention::testing
