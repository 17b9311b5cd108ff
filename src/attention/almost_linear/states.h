// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/feature_maps.h"

namespace loipe::attention::almost_linear {

/// States of heads of keys, [features][pitch]: weighted sums over tokens of F (columns, last). Chunks of
/// tokens are added to a running sum for each head, one by one or, where several threads share a head, in
/// waves of a few neighbouring chunks: each chunk leaves in a slot what it adds, then each slot gets the sum
/// over the chunks before it. Both give the same bits. Heads go in groups, so that memory stays bounded where
/// a state is large.
template <class E>
class States {
 public:
  /// Has_values: the weights that values get may be others, and need sums of their own.
  States(const Geometry<E>& geometry, bool has_values, Arena& arena);
  void fill();

  std::int64_t group() const { return group_; }  ///< heads of a group
  std::int64_t wave() const { return wave_; }    ///< chunks of a wave
  std::int64_t value_features() const { return value_features_; }

  /// A state with the weights of F, and with those of values: `value_features` features of it.
  struct View {
    const E *state, *values;
  };
  /// Heads are counted within their group, positions within their wave.
  View running(std::int64_t head) const {
    return {running_ + head * g_.state_size(),
            has_own() ? value_running(head) : running_ + head * g_.state_size()};
  }
  View before(std::int64_t head, std::int64_t position) const {
    return {slot(head, position), has_own() ? value_slot(head, position) : slot(head, position)};
  }
  E* slot(std::int64_t head, std::int64_t position) const {
    return slots_ + (head * wave_ + position) * g_.state_size();
  }

  void clear(std::int64_t heads);
  /// Add(sum) adds a chunk, in so many parts, to the running sums of one head.
  template <class Add>
  void add_chunk(std::int64_t key_head, std::int64_t head, std::int64_t parts, Add&& add) {
    // Several parts, or two weights for one sum, go through a slot.
    if (parts == 1 && !has_own())
      return add(StateSum<E>{running_ + head * g_.state_size(), true, weights(key_head)});
    add(StateSum<E>{slot(head, 0), false, nullptr});
    step({head, 0, g_.table.count()}, {key_head, 0, true, false});
  }

  struct Scan {
    std::int64_t key_head, heads;  ///< the group
    std::int64_t first, end;       ///< slots first .. end - 1 hold what is to be added
    std::int64_t chunks;           ///< of this wave
    bool is_reversed;              ///< the last chunk comes first
  };
  /// Slots become the sums before them.
  void scan(const Parallel& parallel, const Scan& scan);
  /// The running sums get all slots that count.
  void total(const Parallel& parallel, const Scan& scan);

 private:
  /// A part of a state, features first .. end - 1.
  struct Part {
    std::int64_t head, first, end;
  };
  /// What a slot does to the running sums.
  struct Step {
    std::int64_t key_head, position;
    bool is_added, is_kept;  ///< what is in the slot; the sums before in the slot
  };
  template <class Body>
  void for_each_part(const Parallel& parallel, std::int64_t heads, Body&& body);
  void step(const Part& part, const Step& step);

  bool has_own() const { return value_running_ != nullptr; }
  E* value_running(std::int64_t head) const { return value_running_ + head * value_features_ * g_.pitch; }
  E* value_slot(std::int64_t head, std::int64_t position) const {
    return value_slots_ + (head * wave_ + position) * value_features_ * g_.pitch;
  }
  const E* weights(std::int64_t key_head) const { return weights_ + key_head * g_.table.count(); }

  const Geometry<E>& g_;
  int degree_;  ///< of the features
  std::int64_t value_features_, group_, wave_;
  E *running_, *slots_;
  E *value_running_, *value_slots_;  ///< null: the weights are the same
  E* weights_;                       ///< [kv_heads][features]
  E* value_weights_;                 ///< [kv_heads][value_features]
};

}  // namespace loipe::attention::almost_linear
