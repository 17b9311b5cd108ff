// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <memory>

#include "attention/attention_case.h"
#include "attention/clustered/query_chunk.h"
#include "attention/threads_and_memory.h"

// Clustered attention by its definition: a matrix of pairs for each query, in f64. Which key is in which
// cluster and which clusters a query takes is asked from the code under test, and checked on its own.

namespace loipe::attention::testing {

using clustered::Budget;

/// The clusters of one head of keys, and what each query takes.
struct Choice {
  std::vector<std::vector<std::int64_t>> members;  ///< [clusters]
  std::vector<double> rank;                        ///< [clusters], base 2
  std::vector<std::vector<bool>> taken;            ///< [readers * queries][clusters]
};

template <class E>
Choice choose(const Problem<E>& p, const Budget& budget, std::int64_t key_head) {
  using namespace clustered;
  using T = Accumulator<E>;
  const auto build = [&](Arena& arena) {
    auto plan = std::make_unique<Plan<E>>(p, budget, arena);
    auto keys = std::make_unique<KeyClustering<E>>(*plan, 1, 1, arena);
    const auto lanes = take_lanes(*plan, arena);
    const auto means = take_means(*plan, arena);
    auto* const taken = arena.take<std::uint64_t>(plan->rows);
    return std::tuple(std::move(plan), std::move(keys), lanes, means, taken);
  };
  Arena counting;
  build(counting);
  Workspace memory(counting.used());
  Arena arena(memory.bytes());
  auto [plan, clustering, lanes, means, taken] = build(arena);
  plan->centred.compute_means({});
  clustering->run({}, key_head, 1);
  const KeyClusters<T>& keys = clustering->of(0);
  Choice choice;
  for (std::int64_t c = 0; c < plan->clusters; ++c) {
    choice.rank.push_back(static_cast<double>(keys.rank[c]));
    choice.members.emplace_back();
    for (std::int64_t n = keys.begin[c]; n < keys.begin[c + 1]; ++n)
      choice.members.back().push_back(keys.keys[keys.member[n]]);
  }
  for (std::int64_t reader = 0; reader < p.shape.readers(); ++reader)
    for (std::int64_t i = 0; i < p.shape.queries; ++i) {
      pack_means(*plan, keys, plan->set_of(i / plan->block), means);
      std::fill_n(lanes.q, plan->centred.head_size * plan->lanes, T{0});
      for (std::int64_t c = 0; c < p.shape.head_size; ++c)
        lanes.q[c * plan->lanes] =
            get(p.q, key_head * p.shape.readers() + reader, i, c) * plan->centred.query_factor();
      lanes.count = 1;
      select(*plan, lanes, plan->exact_keys, static_cast<const T*>(nullptr), means, taken);
      choice.taken.emplace_back();
      for (std::int64_t c = 0; c < plan->clusters; ++c) choice.taken.back().push_back(taken[c] != 0);
    }
  return choice;
}

/// Queries that see the same direct keys, by the definition of docs/theory/clustered.md.
struct Blocks {
  std::int64_t size, window;
  Blocks(const Shape& s, bool is_causal, const Budget& budget) {
    const std::int64_t clusters = std::min(budget.clusters, std::max<std::int64_t>(s.keys, 1));
    window = std::max<std::int64_t>(budget.window, is_causal ? 1 : 0);
    size = (std::max({std::int64_t{96}, clusters, window}) + 95) / 96 * 96;
  }
  bool is_direct(const Shape& s, bool is_causal, std::int64_t query, std::int64_t key) const {
    if (window == 0) return false;
    const std::int64_t first = query / size * size, end = std::min(first + size, s.queries);
    return key > first - window && key < (is_causal ? end : end + window - 1);
  }
};

/// One term of the softmax of a query: a key, or the mean of some.
struct Term {
  std::vector<std::int64_t> keys;
  std::vector<double> k, v;
  double logit;  ///< with the logarithm of the number of keys
  bool is_mean;  ///< of a cluster that is not taken
};

template <class E>
std::vector<double> mean_row(const Rows<const E>& rows, std::int64_t head,
                             const std::vector<std::int64_t>& of, std::int64_t columns) {
  std::vector<double> mean(static_cast<std::size_t>(columns), 0.0);
  for (const std::int64_t j : of)
    for (std::int64_t c = 0; c < columns; ++c)
      mean[static_cast<std::size_t>(c)] +=
          static_cast<double>(get(rows, head, j, c)) / static_cast<double>(of.size());
  return mean;
}

template <class E>
std::vector<Term> terms_of(const Problem<E>& p, const Budget& budget, const Choice& choice, std::int64_t head,
                           std::int64_t query) {
  const Shape& s = p.shape;
  const Blocks blocks(s, p.mask.is_causal, budget);
  const std::int64_t kh = s.key_head(head);
  std::vector<Term> terms;
  const auto add = [&](const std::vector<std::int64_t>& keys, bool is_mean) {
    if (keys.empty()) return;
    Term term{keys, mean_row(p.k, kh, keys, s.head_size), mean_row(p.v, kh, keys, s.value_size), 0, is_mean};
    for (std::int64_t c = 0; c < s.head_size; ++c)
      term.logit +=
          p.scale * static_cast<double>(get(p.q, head, query, c)) * term.k[static_cast<std::size_t>(c)];
    term.logit += std::log(static_cast<double>(keys.size()));
    terms.push_back(term);
  };
  for (std::int64_t j = 0; j < s.keys; ++j)
    if (is_allowed(p.mask, kh, query, j) && blocks.is_direct(s, p.mask.is_causal, query, j)) add({j}, false);
  const auto& taken = choice.taken[static_cast<std::size_t>(head % s.readers() * s.queries + query)];
  for (std::size_t c = 0; c < choice.members.size(); ++c) {
    std::vector<std::int64_t> rest;
    for (const std::int64_t j : choice.members[c])
      if (is_allowed(p.mask, kh, query, j) && !blocks.is_direct(s, p.mask.is_causal, query, j))
        rest.push_back(j);
    if (!taken[c]) add(rest, true);
    else
      for (const std::int64_t j : rest) add({j}, false);
  }
  return terms;
}

template <class E>
void oracle_forward(const Problem<E>& p, const Budget& budget, const ForwardResults<E>& results) {
  const Shape& s = p.shape;
  using T = Accumulator<E>;
  for (std::int64_t kh = 0; kh < s.kv_heads; ++kh) {
    const Choice choice = choose(p, budget, kh);
    for (std::int64_t h = kh * s.readers(); h < (kh + 1) * s.readers(); ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::vector<Term> terms = terms_of(p, budget, choice, h, i);
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (const Term& term : terms) largest = std::max(largest, term.logit);
        for (const Term& term : terms) sum += std::exp(term.logit - largest);
        for (std::int64_t c = 0; c < s.value_size; ++c) {
          double o = 0;
          for (const Term& term : terms)
            o += std::exp(term.logit - largest) / sum * term.v[static_cast<std::size_t>(c)];
          set(results.o, h, i, c, static_cast<T>(o));
        }
        set(results.lse, h, i, 0, static_cast<T>(largest + std::log(sum)));
      }
  }
}

/// dQ, dK, dV [head][row][column] in f64.
struct Gradients {
  std::vector<double> q, k, v;
};

/// The mean of the allowed keys of a head: logits are the same up to a shift when it is taken from all keys,
/// and of approximate dX the rows need not sum to dL/dlse.
template <class E>
std::vector<double> mean_of_allowed(const Problem<E>& p, std::int64_t kh) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < p.shape.keys; ++j)
    if (p.mask.key_mask == nullptr || p.mask.key_mask[kh * p.mask.key_mask_head_stride + j] != 0)
      keys.push_back(j);
  return mean_row(p.k, kh, keys, p.shape.head_size);
}

/// With it the weights of a query sum up to 1; at most 4.
inline double factor_of_means(const std::vector<Term>& terms, double lse) {
  double rest = 1, of_means = 0;
  for (const Term& term : terms) {
    if (term.is_mean) of_means += std::exp(term.logit - lse);
    else rest -= std::exp(term.logit - lse);
  }
  return of_means > 0 ? std::clamp(rest / of_means, 0.0, 4.0) : 1;
}

template <class E>
void oracle_vjp(const Problem<E>& p, const Budget& budget, const clustered::Saved<E>& saved,
                const Cotangents<E>& cotangents, Gradients& out) {
  const Shape& s = p.shape;
  const auto size = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return static_cast<std::size_t>(a * b * c);
  };
  out.q.assign(size(s.heads, s.queries, s.head_size), 0);
  out.k.assign(size(s.kv_heads, s.keys, s.head_size), 0);
  out.v.assign(size(s.kv_heads, s.keys, s.value_size), 0);
  for (std::int64_t kh = 0; kh < s.kv_heads; ++kh) {
    const Choice choice = choose(p, budget, kh);
    const std::vector<double> mean = mean_of_allowed(p, kh);
    for (std::int64_t h = kh * s.readers(); h < (kh + 1) * s.readers(); ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const double lse = static_cast<double>(get(saved.lse, h, i, 0));
        if (!std::isfinite(lse)) continue;
        const double l = static_cast<double>(get(cotangents.lse, h, i, 0));
        double d = -l;
        for (std::int64_t c = 0; c < s.value_size; ++c)
          d += static_cast<double>(get(cotangents.o, h, i, c)) * static_cast<double>(get(saved.o, h, i, c));
        for (std::int64_t c = 0; c < s.head_size; ++c)
          out.q[size(h * s.queries + i, s.head_size, 1) + static_cast<std::size_t>(c)] +=
              p.scale * l * mean[static_cast<std::size_t>(c)];
        const std::vector<Term> terms = terms_of(p, budget, choice, h, i);
        const double factor = factor_of_means(terms, lse);
        for (const Term& term : terms) {
          double dp = 0;
          for (std::int64_t c = 0; c < s.value_size; ++c)
            dp += static_cast<double>(get(cotangents.o, h, i, c)) * term.v[static_cast<std::size_t>(c)];
          const double w = (term.is_mean ? factor : 1) * std::exp(term.logit - lse), dx = w * (dp - d);
          const auto part = 1 / static_cast<double>(term.keys.size());
          for (std::int64_t c = 0; c < s.head_size; ++c) {
            const auto column = static_cast<std::size_t>(c);
            out.q[size(h * s.queries + i, s.head_size, 1) + column] +=
                p.scale * dx * (term.k[column] - mean[column]);
            for (const std::int64_t j : term.keys)
              out.k[size(kh * s.keys + j, s.head_size, 1) + column] +=
                  p.scale * part * dx * static_cast<double>(get(p.q, h, i, c));
          }
          for (const std::int64_t j : term.keys)
            for (std::int64_t c = 0; c < s.value_size; ++c)
              out.v[size(kh * s.keys + j, s.value_size, 1) + static_cast<std::size_t>(c)] +=
                  part * w * static_cast<double>(get(cotangents.o, h, i, c));
        }
      }
  }
}

/// Relative Frobenius distance.
template <class A>
double distance(const A& got, const std::vector<double>& expected) {
  double squares = 0, all = 0;
  std::size_t at = 0;
  for (std::int64_t h = 0; h < got.heads(); ++h)
    for (std::int64_t i = 0; i < got.row_count(); ++i)
      for (std::int64_t c = 0; c < got.columns(); ++c, ++at) {
        const double difference = got.at(h, i, c) - expected[at];
        squares += difference * difference, all += expected[at] * expected[at];
      }
  return squares == 0 ? 0 : std::sqrt(squares / all);
}

}  // namespace loipe::attention::testing
