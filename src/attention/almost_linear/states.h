// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/geometry.h"

namespace loipe::attention::almost_linear {

/// States of heads of keys, [features][pitch]: sums over tokens of F (columns, last). A wave is a few
/// neighbouring chunks of each head: each chunk leaves in a slot what it adds, then each slot gets the sum
/// over the chunks before it, times the weights of the features. Heads go in groups, so that memory stays
/// bounded where a state is large.
template <class E>
class States {
 public:
  /// Has_values: the weights that values get may be others, and need a slot of their own.
  States(const Geometry<E>& geometry, bool has_values, Arena& arena);
  void fill();

  std::int64_t group() const { return group_; }  ///< heads of a group
  std::int64_t wave() const { return wave_; }    ///< chunks of a wave
  /// Of a head, counted within its group, and a chunk, counted within its wave.
  E* slot(std::int64_t head, std::int64_t position) const {
    return slots_ + (head * wave_ + position) * g_.state_size();
  }
  /// The same with the weights of values, for `value_features` features.
  E* value_slot(std::int64_t head, std::int64_t position) const {
    if (value_slots_ == nullptr) return slot(head, position);
    return value_slots_ + (head * wave_ + position) * value_features_ * g_.pitch;
  }
  std::int64_t value_features() const { return value_features_; }

  void clear(std::int64_t heads);
  struct Scan {
    std::int64_t key_head, heads;  ///< the group
    std::int64_t first, end;       ///< slots first .. end - 1 hold what is to be added
    std::int64_t chunks;           ///< of this wave
    bool is_reversed;              ///< the last chunk comes first
  };
  void scan(const Parallel& parallel, const Scan& scan);
  /// Slot 0 becomes the weighted sum over all that count.
  void total(const Parallel& parallel, const Scan& scan);

 private:
  /// A part of a state, features first .. end - 1.
  struct Part {
    std::int64_t head, first, end;
  };
  template <class Body>
  void for_each_part(const Parallel& parallel, std::int64_t heads, Body&& body);
  void exchange(const Part& part, std::int64_t key_head, std::int64_t position, bool counts);

  const Geometry<E>& g_;
  int degree_;  ///< of the features
  std::int64_t value_features_, group_, wave_;
  E *running_, *slots_, *value_slots_;
  E* weights_;        ///< [kv_heads][features]
  E* value_weights_;  ///< [kv_heads][value_features]
};

}  // namespace loipe::attention::almost_linear
