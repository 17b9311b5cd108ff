// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// A program taken apart at cuts. The stream are the values of the forward part that are
/// computed from one argument, the one with most to follow; what is computed from others
/// alone (weights) counts as given.
struct Segments {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::vector<bool> is_forward;      ///< per node
  std::vector<bool> is_stream;       ///< per node
  std::vector<Value> cuts;           ///< the argument, then one value per cut that is used
  std::vector<std::size_t> segment;  ///< per node of the stream; a cut ends its segment
  /// Per other node: the earliest segment of which it uses a value, where a cut counts to
  /// the segment that it begins; kNone without any.
  std::vector<std::size_t> stage;

  Segments(const Program& program, std::size_t forward_outputs, std::size_t stride);
  /// All but the last.
  std::size_t count() const { return cuts.empty() ? 0 : cuts.size() - 1; }
  bool is_cut(Value v) const;

 private:
  void find_forward(const Program& program, std::size_t forward_outputs);
  void find_stream(const Program& program);
  void find_cuts(const Program& program, std::size_t stride);
  void find_stages(const Program& program);
};

}  // namespace loipe
