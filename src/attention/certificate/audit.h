// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/almost_linear/almost_linear.h"
#include "attention/exact/attention.h"
#include "attention/problem.h"

// The error that approximate results have, measured on samples of exact ones, with an interval: O(s n d) for
// s samples of each head. E is float or double. Causal masks, windows and key masks are allowed; a bias is
// not. Estimates have the same bits for every number of threads. Derivations: docs/theory/attention_error.md.

namespace loipe::attention::certificate {

/// How a number was come by.
enum class Kind : std::uint8_t {
  none,             ///< not estimated
  sampled_rows,     ///< exact rows of sampled queries
  sampled_columns,  ///< exact rows of sampled keys, from exact lse and O
  /// Rows of sampled keys of a polynomial's error, the exact normaliser of each query being estimated on
  /// these keys. O is taken as it is. Nearly unbiased where logits are small, as they are for polynomials.
  approximate_columns,
  sampled_pairs,  ///< what pairs of sampled queries agree on: unbiased for the square, but scattered widely
};

/// Of a relative Frobenius error |approximate - exact| / |exact|, all heads of the problem together.
struct Estimate {
  Kind kind = Kind::none;
  double value = 0;
  double low = 0, high = 0;  ///< 90 % interval
};

struct Audit {
  Estimate o, q, k, v;
};

/// Results to be audited; absent ones are not.
template <class E>
struct Approximate {
  Rows<const E> o;           ///< [heads, queries, value_size]
  InputCotangents<E> input;  ///< q, k, v
};

struct Sampling {
  std::int64_t rows = 0;     ///< queries of each head; 0: chosen for about 5 % of a fast method's time
  std::int64_t columns = 0;  ///< keys of each head of keys; 0: chosen
  bool has_pairs = false;    ///< for polynomials without projection: dK and dV by pairs, not by columns
  std::uint64_t seed = 0;
};

/// O and lse of exact attention, or both absent. With them dK and dV are audited by columns, O is not.
template <class E>
struct ExactForward {
  Rows<const E> o;    ///< [heads, queries, value_size]
  Rows<const E> lse;  ///< [heads, queries, 1]
};

/// Polynomial attention. Absent: dK and dV are not estimated where the forward pass is not exact.
template <class E>
struct Polynomial {
  const almost_linear::Approximation* approximation = nullptr;
  Rows<const E> denominator;  ///< as almost_linear::forward left it
};

template <class E>
std::size_t audit_workspace(const Problem<E>& problem, const Sampling& sampling, int threads);
/// Needs cotangents.o, unless nothing but O is audited.
template <class E>
Audit audit(const Problem<E>& problem, const Cotangents<E>& cotangents, const Approximate<E>& approximate,
            const ExactForward<E>& exact, const Polynomial<E>& polynomial, const Sampling& sampling,
            const Parallel& parallel, std::span<std::byte> workspace);

}  // namespace loipe::attention::certificate
