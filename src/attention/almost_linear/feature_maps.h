// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/panels.h"

namespace loipe::attention::almost_linear {

/// Where a sum goes.
template <class E>
struct StateSum {
  E* state;          ///< [features][pitch]
  bool continues;    ///< it is added to what is there
  const E* weights;  ///< [features], of what is added to the state; null: 1
};

/// Products of the features of tokens with states, [features][pitch]. Features exist only for a few rows and
/// tokens at a time: those of low degree, which others are made of, and kRows of the highest degree.
template <class E>
class FeatureMaps {
 public:
  /// What a thread works in.
  struct Memory {
    E* low;    ///< [panels of a chunk][low][lanes]
    E* d_low;  ///< [low][lanes]
    E* top;    ///< [panels of a chunk][kRows][lanes]
  };
  FeatureMaps(const Geometry<E>& geometry) : g_(geometry) {}
  Memory take(Arena& arena) const;

  /// A panel as an operand of a state: coordinates, the constant feature, and what the features are summed
  /// with.
  struct Operand {
    const E* x;         ///< [size][lanes]
    const E* constant;  ///< [lanes]; null: 1
    const E* blocks;    ///< column blocks
    const E* last;      ///< [lanes], the last column
  };
  /// state (+)= weights times sum over tokens of F (columns, last).
  void add_to_state(const Operand* panels, std::int64_t count, const StateSum<E>& to, const Memory& m) const;

  /// out[r][lanes] (+)= sum over features f < features of state[f][r] F[f][lanes], for r < rows; `features`
  /// is all of them or those of low degree.
  void apply_state(const E* state, std::int64_t features, const Operand& tokens, std::int64_t rows,
                   bool accumulate, E* out, const Memory& m) const;

  /// d_x[size][lanes] += derivative by x of sum over f of <state[f], d> F[f], with d [pitch][lanes].
  void differentiate(const E* state, const E* d, const Operand& tokens, E* d_x, const Memory& m) const;

 private:
  static constexpr std::int64_t kRows = 48;
  void expand_low(const Operand& tokens, int end_degree, E* low) const;
  template <class Body>
  void for_each_top_block(Body&& body) const {
    const std::int64_t end = g_.table.count();
    for (std::int64_t f = g_.table.low(); f < end; f += kRows) body(f, std::min(kRows, end - f));
  }

  const Geometry<E>& g_;
};

}  // namespace loipe::attention::almost_linear
