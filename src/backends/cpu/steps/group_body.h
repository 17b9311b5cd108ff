// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "backends/cpu/steps/map_group.h"
#include "backends/kernel/kernel.h"

namespace loipe::cpu {

/// Translates the instructions of a group to the body of a kernel.
class GroupBody {
 public:
  /// `load` gives the access of an input slot.
  GroupBody(const MapGroup& group, kernel::Kernel& kernel, std::function<kernel::Id(Slot)> load);

  /// False if an instruction that the slot needs has no counterpart.
  bool compute(Slot slot);
  kernel::Id value(Slot slot) const { return values_[slot]; }

 private:
  static constexpr kernel::Id kNone = ~kernel::Id{0};

  bool append(const MapInstruction& instruction);
  bool append_conversion(const MapInstruction& instruction);
  bool append_compound(const MapInstruction& instruction, DType dtype);
  kernel::Id node(const kernel::Node& node);
  kernel::Id scalar(scalar::Op op, DType dtype, kernel::Id a, kernel::Id b = 0, kernel::Id c = 0);
  kernel::Id constant(DType dtype, double value);
  kernel::Id source(const MapInstruction& instruction, std::size_t k) const {
    return values_[instruction.sources[k]];
  }

  const MapGroup& group_;
  kernel::Kernel& kernel_;
  std::function<kernel::Id(Slot)> load_;
  std::vector<std::int64_t> definition_;  ///< per slot: its instruction, -1 without any
  std::vector<kernel::Id> values_;        ///< per slot
};

}  // namespace loipe::cpu
