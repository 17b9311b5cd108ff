// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/tiling/region.h"

namespace loipe::cpu {

/// What is known of a program before regions grow in it.
class Surroundings {
 public:
  explicit Surroundings(const Program& program);

  const Program& program() const { return program_; }
  std::int64_t bytes(Value v) const { return static_cast<std::int64_t>(program_.type(v).byte_size()); }
  /// Users that an output needs, once per use.
  const std::vector<Value>& users(Value v) const { return users_[v.index]; }
  bool is_output(Value v) const { return is_output_[v.index]; }
  bool is_live(Value v) const { return is_live_[v.index]; }
  bool is_leaf(Value v) const;

  struct Slicing {
    std::optional<AxisFlow> flow;
    std::int64_t shortest = 1;       ///< slice, for the sake of the node's sums
    std::int64_t longest_value = 0;  ///< elements of the largest tensor with the axis innermost
  };
  /// How the node is sliced along one of its axes.
  const Slicing& slicing(Value node, std::int64_t axis) const;

 private:
  const Program& program_;
  std::vector<std::vector<Value>> users_;
  std::vector<bool> is_output_, is_live_;
  mutable std::vector<std::vector<std::optional<Slicing>>> slicings_;  ///< by node and axis
};

/// Grows one region at a time from a seed, on top of those that a tiling has already.
class Growth {
 public:
  explicit Growth(const Surroundings& around) : around_(around), axis_(around.program().size(), kOutside) {}

  /// The region around the seed along the axis, of nodes that are content with slices of `longest_need`.
  void grow(const Tiling& tiling, Value seed, std::int64_t axis, std::int64_t longest_need);

  /// In the order of execution.
  const std::vector<Value>& nodes() const { return nodes_; }
  std::int64_t axis(Value v) const { return axis_[v.index]; }
  /// All that the label reached, also what then fell out again.
  const std::vector<Value>& reached() const { return reached_; }

  /// Bytes of values that would not exist as a whole.
  std::int64_t bytes_hidden() const;
  /// Bytes of members that exist as a whole, and of values that are computed before.
  std::int64_t bytes_at_border() const;
  /// Bytes of values from outside that every tile reads as a whole.
  std::int64_t bytes_of_whole_inputs() const;
  /// The most bytes of members that are alive at one time, as whole values.
  std::int64_t live_bytes() const;
  /// The shortest slice that suits all members.
  std::int64_t shortest_slice() const;
  bool has_sums() const;
  Region region(std::int64_t extent, std::int64_t slice) const;

 private:
  static constexpr std::int64_t kOutside = -1;

  bool contains(Value v) const { return axis_[v.index] != kOutside; }
  bool is_inner(Value v) const;
  const Surroundings::Slicing& slicing(Value v) const { return around_.slicing(v, axis_[v.index]); }
  std::int64_t need_of(Value node, const Surroundings::Slicing& slicing) const;
  bool add(const Tiling& tiling, Value node, std::int64_t axis);
  void add_neighbours(const Tiling& tiling, Value node);
  std::optional<std::int64_t> axis_of_user(Value user, Value node) const;
  bool reads_members_along_their_axes(Value node) const;
  void keep_convex(const Tiling& tiling);

  const Surroundings& around_;
  std::vector<std::int64_t> axis_;  ///< per node
  std::vector<Value> nodes_, reached_;
  std::int64_t extent_ = 0, longest_need_ = 0, seed_bytes_ = 0, large_ = 0;
};

}  // namespace loipe::cpu
