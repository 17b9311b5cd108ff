// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "attention/problem.h"

// What the choice of a method needs to know of each head of keys and the query heads that read it, from one
// pass over Q, K and V: O(n d^2) time. Masks by position are ignored: all queries meet all keys that the key
// mask admits. E is float or double. Derivations: docs/theory/attention_error.md.

namespace loipe::attention::statistics {

struct Options {
  double energy = 0.999;  ///< part of the logit energy that the effective rank keeps
};

/// Of one head of keys and its readers. With c_j = k_j - centre, the centre being the mean of the keys,
/// logits are x_ij = scale <q_i, c_j>. All are 0 for no keys or no queries; not finite where an input is not.
struct HeadStatistics {
  double scale = 0;
  std::int64_t keys = 0;        ///< that the key mask admits
  double logit_spread = 0;      ///< root mean square of x_ij
  double logit_bound = 0;       ///< |scale| max |q_i| max |c_j|, above all |x_ij|
  double largest_logit = 0;     ///< largest |x_ij| of at most 32 queries of each reader and 256 keys
  double query_norm = 0;        ///< max |q_i|
  double key_norm = 0;          ///< max |c_j|
  double value_norm = 0;        ///< max |v_j - mean v|
  std::int64_t rank = 0;        ///< least columns of the basis that keep the asked part of the logit energy
  double lost_energy = 0;       ///< part of it that these leave
  double query_rest = 0;        ///< max |rest of q_i| outside of them, see below
  double key_rest = 0;          ///< max |rest of c_j|
  double projection_bound = 0;  ///< |scale| query_rest key_rest
};

/// heads[kv_heads] and, unless null, basis[kv_heads][head_size][head_size]: orthonormal columns, most energy
/// first. With B the first r of them, <q, c> - <B^T q, B^T c> = <rest of q, rest of c>, the rests being what
/// is orthogonal to B: there are no cross terms, so that logits of projected heads are off by at most
/// projection_bound, at `rank` columns.
template <class E>
std::size_t statistics_workspace(const Problem<E>& problem, int threads);
template <class E>
void statistics(const Problem<E>& problem, const Options& options, std::span<HeadStatistics> heads,
                double* basis, const Parallel& parallel, std::span<std::byte> workspace);

/// The first `rank` columns of one head's basis as [head_size][rank].
void copy_columns(const double* basis, std::int64_t head_size, std::int64_t rank, double* out);

}  // namespace loipe::attention::statistics
