// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

/// Number of a value inside a group.
using Slot = std::uint32_t;

/// One elementwise operation. Sources that the opcode lacks repeat the first one.
struct MapInstruction {
  Opcode opcode;
  bool is_f64;  ///< the T of the opcode is f64, else f32
  Slot result;
  std::array<Slot, 3> sources;
};

/// Elementwise operations that run over one iteration space together: straight-line
/// code over slots. Slots with a view are read from memory (no instruction defines
/// them) or also stored to memory (contiguous); all others stay in registers.
struct MapGroup {
  static constexpr std::int32_t kNoView = -1;
  struct SlotInfo {
    DType dtype;
    std::int32_t view = kNoView;  ///< place in `views`
    bool is_input = false;
  };
  /// A slot that is reduced over axes of the space, after which the group ends. The
  /// view of the result along the space stands still on these axes.
  struct Reduced {
    Slot slot;
    Reduction reduction;
    StridedView out;
  };
  Shape space;
  std::vector<SlotInfo> slots;
  std::vector<StridedView> views;  ///< along the space
  std::vector<MapInstruction> code;
  std::optional<Reduced> reduced;
};

/// The space, what is read and written, and the code, a line each.
std::string to_text(const MapGroup& group);

/// For every slot, the last instruction that reads it; -1 if none does.
std::vector<std::int64_t> last_uses(const MapGroup& group);

/// The group cut into parts that share no computed value and read no large operand
/// together, in the order of their first instructions: fewer streams through memory
/// at a time, and loops that suit each. What leads to no stored slot is left out.
std::vector<MapGroup> independent_parts(const MapGroup& group);

}  // namespace loipe::cpu
