// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/plan.h"

namespace loipe::cpu {

/// Where an argument or output of a tile's plan lies in the memory around it.
struct TileBinding {
  BufferId outer;
  std::int64_t offset;  ///< bytes from the start of the outer buffer
  std::int64_t step;    ///< bytes from one value of the label to the next; 0: the same for all
};

/// The plan of one length of tile; bindings in the order of its arguments and outputs.
struct TilePlan {
  Plan plan;
  std::vector<TileBinding> arguments, outputs;
};

/// Runs a plan for every tile of `slice` values of a label of `extent` values; `last` is for a last tile
/// that is shorter (null if there is none). Tiles are tasks: each thread has the memory
/// of one tile in its scratch.
std::unique_ptr<Step> make_tiled_step(std::int64_t extent, std::int64_t slice, std::unique_ptr<TilePlan> tile,
                                      std::unique_ptr<TilePlan> last);

}  // namespace loipe::cpu
