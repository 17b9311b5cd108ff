// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attention/almost_linear/almost_linear.h"
#include "attention/exact/attention.h"
#include "attention/statistics/statistics.h"

// A bound on what polynomial attention differs from exact attention by, that holds for every input: from
// norms and the polynomial's error on the range of the logits, O(n d). In exact arithmetic: rounding of the
// kernels is not counted. Derivation: docs/theory/attention_error.md.

namespace loipe::attention::certificate {

/// Of absolute errors.
struct Bound {
  double row;        ///< largest Euclidean norm of a row's error
  double frobenius;  ///< of all rows together
  /// |error| / |exact| at most, for the norm of the approximate result; infinite where the bound is not below
  /// it.
  double relative(double approximate_norm) const;
};

/// Why there is no bound.
enum class Vacuity : std::uint8_t {
  none,
  not_finite,   ///< statistics are not finite
  not_centred,  ///< statistics are those of centred keys
  mask,         ///< a window of the mask or a bias
  range,        ///< logits may be above 300
  polynomial,   ///< P may be off by as much as exp itself, so that a denominator may vanish
};
const char* text_of(Vacuity vacuity);

/// Of one head of keys and its readers; all infinite where vacuity is not `none`.
struct RigorousBound {
  Vacuity vacuity = Vacuity::none;
  Bound o{}, q{}, k{}, v{};
  double weight_error = 0;  ///< of a row's weights, in the sum of absolute values
};

/// `statistics` are those of head kh of `problem`, and of the basis whose first statistics.rank columns
/// `approximation` projects on if its rank is not 0. Cotangents may be absent: then O alone is bounded.
template <class E>
RigorousBound rigorous_bound(const Problem<E>& problem, std::int64_t kh,
                             const statistics::HeadStatistics& statistics,
                             const almost_linear::Approximation& approximation,
                             const Cotangents<E>& cotangents);

}  // namespace loipe::attention::certificate
