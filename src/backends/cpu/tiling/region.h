// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cpu/tiling/axis_flow.h"

namespace loipe::cpu {

/// Nodes that are computed slice by slice along one label: all of them for a few
/// values of the label, then all of them for the next few. What only they need then
/// never exists as a whole: a slice stays in the cache, and tiles of the label are the
/// tasks of the threads.
///
/// No node outside lies between two members (on a path from one to another), so a
/// region runs as one step.
struct Region {
  struct Member {
    std::int64_t axis;
    AxisFlow flow;
  };
  std::vector<Value> nodes;  ///< in program order
  std::unordered_map<std::uint32_t, Member> members;
  std::int64_t extent = 0;  ///< of the label
  std::int64_t slice = 0;   ///< values of the label in a tile; the last tile may have fewer

  bool contains(Value v) const { return members.contains(v.index); }
};

struct TilingOptions {
  /// Bytes that the values of one tile should fit in, as far as possible. Less makes tiles, and
  /// also the values that are worth hiding, smaller.
  std::int64_t tile_bytes = 1 << 19;
  /// Tiles are also tasks of threads, so what fits the cache anyway is tiled too.
  bool is_parallel = true;
};

/// The nodes in an order in which they can run, and the regions among them: the members
/// of a region are neighbours in the order.
struct Tiling {
  static constexpr std::int32_t kNone = -1;
  std::vector<Region> regions;
  std::vector<std::int32_t> region_of;  ///< per node
  std::vector<Value> order;
};

/// The program without regions, in its own order.
Tiling one_by_one(const Program& program);

/// Its label, its nodes and the axis of each, a line.
std::string to_text(const Program& program, const Region& region);

/// Finds regions that are worth it: those whose inner values are large together.
Tiling find_regions(const Program& program, const TilingOptions& options);

}  // namespace loipe::cpu
