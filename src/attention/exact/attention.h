// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "attention/problem.h"

// Exact attention in memory linear in queries and keys: O = P V with P = softmax of the allowed
// logits, row by row. Derivations and numerics: docs/theory/attention.md.
//
// E is float, double or Bf16. Results have the same bits for every number of threads. A
// query that may look at no key has O = 0 and lse = -inf, and gives and gets exactly 0
// everywhere else. Results must not overlap with inputs or each other.

namespace loipe::attention {

/// Columns of the statistics of a query row, which `forward` leaves for the derivatives: with them they
/// use exactly the weights that `forward` used. In units of their own: to be passed on, not read.
inline constexpr std::int64_t kStatistics = 2;

template <class E>
struct ForwardResults {
  Rows<E> o;                          ///< [heads, queries, value_size]
  Rows<Accumulator<E>> lse;           ///< [heads, queries, 1]: log sum exp of the logits; may be absent
  Rows<Accumulator<E>> statistics{};  ///< [heads, queries, kStatistics]; may be absent
};

/// Bytes of workspace, given as memory of any content, aligned to 64 bytes. At most 20 MiB beyond
/// what is linear in the queries (docs/theory/attention.md).
template <class E>
std::size_t forward_workspace(const Problem<E>& problem, int threads);
template <class E>
void forward(const Problem<E>& problem, const ForwardResults<E>& results, const Parallel& parallel,
             std::span<std::byte> workspace);

/// What `forward` has left. Without it (absent o or statistics), and where O is too coarse (Bf16; values that
/// share an offset of more than 8 times their spread), `vjp` computes it again, for a third more time.
template <class E>
struct Saved {
  Rows<const E> o;
  Rows<const Accumulator<E>> statistics;
};

template <class E>
struct Cotangents {
  Rows<const E> o;                   ///< dL/dO [heads, queries, value_size]
  Rows<const Accumulator<E>> lse{};  ///< dL/dlse [heads, queries, 1]; absent: 0
};

/// Derivatives of L by the inputs; those that are absent are not computed.
template <class E>
struct InputCotangents {
  Rows<E> q, k, v;
  /// Shape of the bias; where it has stride 0, the sum over that axis.
  Rows<Accumulator<E>> bias{};
};

template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, int threads);
template <class E>
void vjp(const Problem<E>& problem, const Saved<E>& saved, const Cotangents<E>& cotangents,
         const InputCotangents<E>& results, const Parallel& parallel, std::span<std::byte> workspace);

/// Tangents of q, k, v and the bias; absent ones are 0.
template <class E>
struct InputTangents {
  Rows<const E> q, k, v;
  Rows<const Accumulator<E>> bias{};
};

template <class E>
struct Tangents {
  Rows<E> o;                   ///< [heads, queries, value_size]; may be absent
  Rows<Accumulator<E>> lse{};  ///< [heads, queries, 1]; may be absent
};

template <class E>
std::size_t jvp_workspace(const Problem<E>& problem, int threads);
template <class E>
void jvp(const Problem<E>& problem, const InputTangents<E>& tangents, const Tangents<E>& results,
         const Parallel& parallel, std::span<std::byte> workspace);

/// The JVP of the VJP: tangents of dL/dQ, dL/dK, dL/dV along tangents of q, k, v and of
/// the cotangents (absent ones are 0).
template <class E>
std::size_t vjp_jvp_workspace(const Problem<E>& problem, int threads);
template <class E>
void vjp_jvp(const Problem<E>& problem, const Cotangents<E>& cotangents, const InputTangents<E>& tangents,
             const Cotangents<E>& cotangent_tangents, const InputCotangents<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace);

}  // namespace loipe::attention
