// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "attention/exact/attention.h"
#include "attention/problem.h"

// Attention in which every query sees the keys of its best clusters one by one, and of every other cluster
// one mean key and mean value, weighted by the number of its allowed keys (docs/theory/clustered.md). Sub-
// quadratic, with an error that has to be measured: there is no useful bound. Causal heads count and
// average allowed keys alone. E is float or double. Causal masks and key masks are allowed; a window of the
// mask and a bias are not (the caller sees to that). Results have the same bits for every number of threads.

namespace loipe::attention::clustered {

struct Budget {
  std::int64_t clusters = 64;    ///< of the keys of each head of keys; as many as there are keys at most
  std::int64_t exact_keys = 64;  ///< about so many allowed keys for each query, those of its best clusters
  /// Keys with |i - j| < window are seen one by one besides. A causal head sees its own block of queries so
  /// in any case.
  std::int64_t window = 0;
  std::uint64_t seed = 0;  ///< of the first centres
  /// Of derivatives: exact_keys is the mean over queries, of which those get more whose weights and
  /// cotangents are large (attention/clustered/importance.h). The choice then depends on norms of the
  /// cotangents.
  bool is_by_importance = false;
  /// Of derivatives: about so many queries of each head, drawn at random, see all keys one by one. Their rows
  /// of dQ are exact, and what they know better about dK and dV stands for all queries: these are unbiased
  /// then, over seeds (attention/clustered/sampled_queries.h).
  std::int64_t sampled = 0;
};

/// Of exact attention, or of `forward` below.
template <class E>
struct Saved {
  Rows<const E> o;                 ///< [heads, queries, value_size]
  Rows<const Accumulator<E>> lse;  ///< [heads, queries, 1]
};

/// Derivatives by the formulas of exact attention, with the weights exp(x_ij - lse_i) of the keys that are
/// seen one by one and those of the means of other clusters. With o and lse of exact attention: exact
/// forward and clustered backward, linear in the cotangents unless the budget is by importance.
template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, const Budget& budget, int threads);
template <class E>
void vjp(const Problem<E>& problem, const Budget& budget, const Saved<E>& saved,
         const Cotangents<E>& cotangents, const InputCotangents<E>& results, const Parallel& parallel,
         std::span<std::byte> workspace);

/// Clustered attention itself.
template <class E>
std::size_t forward_workspace(const Problem<E>& problem, const Budget& budget, int threads);
template <class E>
void forward(const Problem<E>& problem, const Budget& budget, const ForwardResults<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace);

/// The error that budgets would have, from sampled queries: for each of `budgets`, which differ in exact_keys
/// alone, the relative Frobenius error of dQ over the sampled rows (all heads of the problem together).
struct Pilot {
  std::int64_t rows = 32;  ///< sampled queries for each head
  std::uint64_t seed = 0;
};
template <class E>
std::size_t pilot_workspace(const Problem<E>& problem, std::span<const Budget> budgets, const Pilot& pilot,
                            int threads);
template <class E>
void pilot(const Problem<E>& problem, std::span<const Budget> budgets, const Pilot& pilot,
           const Saved<E>& saved, const Cotangents<E>& cotangents, std::span<double> errors,
           const Parallel& parallel, std::span<std::byte> workspace);

/// Time of `vjp`, about, as a fraction of that of the exact derivative; above 1 for short inputs.
double relative_cost(const Shape& shape, bool is_causal, const Budget& budget);

}  // namespace loipe::attention::clustered
