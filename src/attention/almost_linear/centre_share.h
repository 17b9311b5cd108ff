// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/centres.h"

namespace loipe::attention::almost_linear {

/// What the derivatives are computed from.
template <class E>
struct BackwardProblem {
  const Problem<E>& problem;
  const Approximation& approximation;
  Saved<E> saved;
  Cotangents<E> cotangents;
  InputCotangents<E> results;
};

/// What reaches keys through their centre, the mean of those that the key mask admits: each gets 1 / count of
/// sum over queries of dL/dlse scale q - sum over keys of dL/d(k - centre).
template <class E>
class CentreShare {
 public:
  CentreShare(const BackwardProblem<E>& backward, const Geometry<E>& geometry, const Centres<E>& centres,
              Arena& arena);
  bool is_wanted() const;

  /// Queries first .. end - 1 of one chunk, which come in order.
  void add_queries(std::int64_t head, std::int64_t first, std::int64_t end) const;
  /// A chunk of keys whose dK is finished but for the share.
  void sum_keys(std::int64_t key_head, std::int64_t chunk) const;
  /// After all of them.
  void share(const Parallel& parallel) const;

 private:
  void add_share(std::int64_t key_head, std::int64_t chunk) const;

  const BackwardProblem<E>& backward_;
  const Geometry<E>& g_;
  const Centres<E>& centres_;
  double* of_queries_;  ///< [heads][query_chunks][head_size]: sum of dL/dlse scale q
  double* of_keys_;     ///< [kv_heads][key_chunks][head_size]: sum of dL/d(k - centre)
  E* shares_;           ///< [kv_heads][head_size]
};

}  // namespace loipe::attention::almost_linear
