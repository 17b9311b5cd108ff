// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "attention/exact/attention.h"
#include "attention/problem.h"

// Attention with a polynomial in place of exp, in time linear in the numbers of queries and keys:
//
//   o_i = sum_j P(x_ij) v_j / den_i,  den_i = sum_j P(x_ij),  x_ij = scale <q_i, k_j - centre>
//
// over allowed pairs, as P(<q, k>) is a product of k = C(d + g, g) monomials of q with those of k
// (docs/theory/almost_linear.md). E is float or double. Causal masks and key masks are allowed; a window
// of the mask and a bias are not (the caller sees to that). Results have the same bits for every number of
// threads. A query that may look at no key has o = 0, lse = -inf, and no derivative passes there.

namespace loipe::attention::almost_linear {

/// Of which function the derivatives are.
enum class Gradient : std::uint8_t {
  /// Of the approximate attention, exactly.
  consistent,
  /// The formulas of exact attention with the approximate weights (Liang et al. 2024, corrected): by v as
  /// above; by q and k with monomials of the antiderivative of P, so of one degree more.
  paper,
};

struct Approximation {
  int degree = 2;
  const double* coefficients = nullptr;  ///< [kv_heads][degree + 1]: of x^0, x^1, ... for each head of keys
  /// Above 0: pairs with |i - j| < window have exp(x) instead of P(x).
  std::int64_t window = 0;
  bool is_centred = true;  ///< centre = mean of the head's keys that the key mask admits; else 0
  /// Projections of low-rank heads: queries and centred keys are replaced by their coordinates in
  /// `rank` orthonormal columns, basis [kv_heads][head_size][rank]. Null: none.
  std::int64_t rank = 0;
  const double* basis = nullptr;
  Gradient gradient = Gradient::consistent;
};

/// C(size + degree, degree), the monomials of degree at most `degree` in `size` variables; saturates at the
/// largest int64.
std::int64_t feature_count(std::int64_t size, int degree);

template <class E>
struct ForwardResults {
  Rows<E> o;            ///< [heads, queries, value_size]
  Rows<E> lse;          ///< [heads, queries, 1]: log den_i + scale <q_i, centre>; may be absent
  Rows<E> denominator;  ///< [heads, queries, 1]: den_i; may be absent
  /// [kv_heads]: rows whose denominator was not above the guard (smallest positive), which then took its
  /// place; may be null.
  std::int64_t* guarded_rows = nullptr;
};

/// Bytes of workspace, memory of any content, aligned to 64 bytes; linear in queries, keys and features.
template <class E>
std::size_t forward_workspace(const Problem<E>& problem, const Approximation& approximation, int threads);
template <class E>
void forward(const Problem<E>& problem, const Approximation& approximation, const ForwardResults<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace);

/// What `forward` left.
template <class E>
struct Saved {
  Rows<const E> o, denominator;
};

/// Derivatives of L by q, k, v; absent ones are not computed; no bias.
template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, const Approximation& approximation, int threads);
template <class E>
void vjp(const Problem<E>& problem, const Approximation& approximation, const Saved<E>& saved,
         const Cotangents<E>& cotangents, const InputCotangents<E>& results, const Parallel& parallel,
         std::span<std::byte> workspace);

}  // namespace loipe::attention::almost_linear
