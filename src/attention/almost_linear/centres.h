// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/geometry.h"

namespace loipe::attention::almost_linear {

/// What is known of each head of keys before its pairs: its centre, which keys the key mask admits, and the
/// basis of its projection.
template <class E>
class Centres {
 public:
  Centres(const Geometry<E>& geometry, Arena& arena);
  void compute(const Parallel& parallel);

  const E* centre(std::int64_t key_head) const { return centres_ + key_head * g_.head_size; }
  std::int64_t admitted(std::int64_t key_head) const { return admitted_[key_head]; }
  /// Whether query i may look at some key.
  bool has_keys(std::int64_t key_head, std::int64_t i) const {
    return g_.is_causal() ? i >= first_[key_head] : admitted_[key_head] > 0;
  }
  const E* basis(std::int64_t key_head) const {  ///< [head_size][rank]; null: none
    return basis_ == nullptr ? nullptr : basis_ + key_head * g_.problem.shape.head_size * g_.coordinates();
  }

 private:
  void sum(std::int64_t key_head, std::int64_t part);

  const Geometry<E>& g_;
  std::int64_t parts_;
  E* centres_;                       ///< [kv_heads][head_size]
  E* basis_;                         ///< [kv_heads][head_size][rank]
  double* sums_;                     ///< [kv_heads][parts][head_size]
  std::int64_t* counts_;             ///< [kv_heads][parts]
  std::int64_t *admitted_, *first_;  ///< [kv_heads]: how many keys, and the first (the number of keys: none)
};

}  // namespace loipe::attention::almost_linear
