// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/tiling/region.h"

namespace loipe::cpu {

/// One tile of a region as a program of its own.
struct TileProgram {
  /// An argument: a value from outside the region, sliced along an axis or as a whole.
  struct Input {
    static constexpr std::int64_t kPositions = -2;  ///< 0, 1, 2, ... along the label
    Value value;                                    ///< meaningless for positions
    std::int64_t axis;                              ///< or AxisFlow::kWhole, or kPositions
    auto operator<=>(const Input&) const = default;
  };
  /// A result that is needed outside.
  struct Output {
    Value value;
    std::int64_t axis;
  };
  Program program;
  std::vector<Input> inputs;    ///< one per argument
  std::vector<Output> outputs;  ///< one per output
};

/// The program for tiles of `extent` values of the region's label. `is_needed_outside`
/// says for every node of `program` whether something outside the region reads it.
TileProgram tile_program(const Program& program, const Region& region, std::int64_t extent,
                         const std::vector<bool>& is_needed_outside);

}  // namespace loipe::cpu
