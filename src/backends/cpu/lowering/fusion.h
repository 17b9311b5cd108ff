// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/cpu/lowering/epilogues.h"
#include "backends/cpu/step.h"
#include "backends/cpu/steps/map_group.h"
#include "ir/program.h"

namespace loipe::cpu {

class Lowering;

/// An operand of an elementwise node along the iteration space: its axis k runs
/// with axis axis_of[k] of the space (kNoAxis for an axis of extent 1).
struct Access {
  Value value;
  Integers axis_of;
};

/// Collects elementwise nodes in open groups, one per iteration space. No open group
/// reads a value of another one: who reads a value of an open group in any other
/// way than element by element in the same space has that group run first (closed).
/// So open groups may run in any order, and each later than where its nodes stand.
class Fusion {
 public:
  explicit Fusion(Lowering& lowering) : lowering_(lowering) {}

  /// The slots of the operands in the group of the space, which is opened if need be.
  std::vector<Slot> operands(const Shape& space, std::span<const Access> accesses);
  /// A slot of the same group for something that is in memory.
  Slot input(const Shape& space, const StridedView& along_space);
  /// Adds an instruction to the group; f64 or f32 is the T of the opcode.
  Slot compute(const Shape& space, Opcode opcode, bool is_f64, DType result, std::span<const Slot> sources);
  /// A copy of what is in memory with 0 where a mask of the same shape is false; a group of its own.
  StridedView masked_copy(const StridedView& value, std::span<const StridedView> masks);
  /// Makes the slot the value of the node.
  void define(const Shape& space, Value node, Slot slot);

  /// Lets the group that computes `operand` end in its reduction over the axes, which is the value of
  /// the node, and closes it. False, and nothing happens, where that does not pay or
  /// the operand is in memory.
  bool reduce(Value node, Value operand, Reduction reduction, const Integers& axes);

  bool is_pending(Value v) const { return place_.contains(v.index); }
  /// The slot's other name; the operand must be pending.
  void define_as(Value node, Value operand);
  /// Closes the group that computes v.
  void materialise(Value v);
  /// Called before each node: closes groups over large spaces that the node does not
  /// join, so that values do not wait in memory for long.
  void before(const Shape& space);
  void close_all();

 private:
  struct OpenGroup {
    MapGroup group;
    std::vector<std::pair<Value, Slot>> members;
    std::unordered_multimap<std::uint32_t, Slot> inputs;  ///< by value
    std::vector<BufferId> consumed;                       ///< one entry per use of an input
  };
  struct Place {
    const Shape* space;
    Slot slot;
  };

  OpenGroup& open(const Shape& space);
  Slot input_slot(OpenGroup& open, Value v, const StridedView& along_space);
  Slot new_slot(OpenGroup& open, DType dtype);
  void close(const Shape& space);
  void emit(const MapGroup& group, const LoopReads& all);
  void emit_apart(MapGroup group, const LoopReads& all);
  std::unique_ptr<Step> kernel_step(const MapGroup& group);

  Lowering& lowering_;
  std::map<Shape, OpenGroup> open_;
  std::unordered_map<std::uint32_t, Place> place_;  ///< of pending values
};

}  // namespace loipe::cpu
