// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/fusion.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "backends/cpu/lowering/lowering.h"
#include "backends/cpu/lowering/op_lowerings.h"
#include "backends/cpu/steps/block_step.h"
#include "backends/cpu/steps/kernel_step.h"
#include "backends/cpu/steps/scalar_step.h"

namespace loipe::cpu {

namespace {

/// Larger spaces do not stay open: their operands would wait in memory.
constexpr std::int64_t kLargeSpace = 1 << 15;
constexpr std::size_t kMostOpenGroups = 16;

/// Reads the operand element by element in the space, nothing repeated or permuted.
bool is_identity(const Integers& axis_of, const Shape& operand, const Shape& space) {
  if (operand != space) return false;
  for (std::size_t axis = 0; axis < axis_of.size(); ++axis)
    if (axis_of[axis] != static_cast<std::int64_t>(axis) && space[axis] != 1) return false;
  return true;
}

}  // namespace

Fusion::OpenGroup& Fusion::open(const Shape& space) {
  auto place = open_.find(space);
  if (place != open_.end()) return place->second;
  if (open_.size() >= kMostOpenGroups) close_all();
  OpenGroup& opened = open_[space];
  opened.group.space = space;
  return opened;
}

std::vector<Slot> Fusion::operands(const Shape& space, std::span<const Access> accesses) {
  const Program& program = lowering_.program();
  for (const Access& access : accesses) {
    const auto place = place_.find(access.value.index);
    if (place == place_.end()) continue;
    if (*place->second.space != space || !is_identity(access.axis_of, program.shape(access.value), space))
      materialise(access.value);
  }
  OpenGroup& group = open(space);
  std::vector<Slot> slots;
  for (const Access& access : accesses) {
    lowering_.consume_value(access.value);
    if (const auto place = place_.find(access.value.index); place != place_.end()) {
      slots.push_back(place->second.slot);
    } else {
      const StridedView& view = lowering_.view(access.value);
      group.consumed.push_back(view.buffer);
      slots.push_back(input_slot(group, access.value,
                                 lowering_.with_near_neighbours(along(view, space, access.axis_of))));
    }
  }
  return slots;
}

Slot Fusion::new_slot(OpenGroup& open, DType dtype) {
  open.group.slots.push_back({dtype});
  return static_cast<Slot>(open.group.slots.size() - 1);
}

Slot Fusion::input_slot(OpenGroup& open, Value v, const StridedView& along_space) {
  auto [begin, end] = open.inputs.equal_range(v.index);
  for (auto known = begin; known != end; ++known) {
    const auto view = static_cast<std::size_t>(open.group.slots[known->second].view);
    if (open.group.views[view].strides == along_space.strides) return known->second;
  }
  const Slot slot = new_slot(open, along_space.dtype);
  open.group.slots[slot].view = static_cast<std::int32_t>(open.group.views.size());
  open.group.slots[slot].is_input = true;
  open.group.views.push_back(along_space);
  open.inputs.emplace(v.index, slot);
  return slot;
}

Slot Fusion::input(const Shape& space, const StridedView& along_space) {
  OpenGroup& group = open(space);
  const Slot slot = new_slot(group, along_space.dtype);
  group.group.slots[slot].view = static_cast<std::int32_t>(group.group.views.size());
  group.group.slots[slot].is_input = true;
  group.group.views.push_back(along_space);
  return slot;
}

Slot Fusion::compute(const Shape& space, Opcode opcode, bool is_f64, DType result,
                     std::span<const Slot> sources) {
  OpenGroup& group = open(space);
  const Slot slot = new_slot(group, result);
  MapInstruction instruction{opcode, is_f64, slot, {}};
  for (std::size_t k = 0; k < 3; ++k) instruction.sources[k] = sources[k < sources.size() ? k : 0];
  group.group.code.push_back(instruction);
  return slot;
}

StridedView Fusion::masked_copy(const StridedView& value, std::span<const StridedView> masks) {
  const StridedView copy = lowering_.temporary(value.dtype, value.shape);
  MapGroup group;
  group.space = value.shape;
  const auto in_memory = [&](const StridedView& view, bool is_input) {
    group.slots.push_back({view.dtype, static_cast<std::int32_t>(group.views.size()), is_input});
    group.views.push_back(view);
    return static_cast<Slot>(group.slots.size() - 1);
  };
  Slot result = in_memory(value, true);
  for (const StridedView& mask : masks) {
    const Slot condition = in_memory(mask, true), product = result;
    const bool is_last = &mask == &masks.back();
    if (is_last) result = in_memory(copy, false);
    else group.slots.push_back({value.dtype}), result = static_cast<Slot>(group.slots.size() - 1);
    group.code.push_back(
        {Opcode::masked, value.dtype == DType::f64, result, {condition, product, condition}});
  }
  emit(group, {{}, group.views});
  return copy;
}

void Fusion::define(const Shape& space, Value node, Slot slot) {
  const auto group = open_.find(space);
  group->second.members.emplace_back(node, slot);
  place_[node.index] = {&group->first, slot};
}

void Fusion::define_as(Value node, Value operand) {
  const Place place = place_.at(operand.index);
  lowering_.consume_value(operand);
  define(*place.space, node, place.slot);
}

/// Sums of rows that are as short as a few vectors stay in registers while the kernel walks along the
/// reduced axes. Over longer rows that walk would go from page to page; and a reduced
/// last axis is a tree over vectors, not a walk.
bool Fusion::reduce(Value node, Value operand, Reduction reduction, const Integers& axes) {
  constexpr std::int64_t kLongestRow = 128, kFewestResults = 16;
  const auto place = place_.find(operand.index);
  if (place == place_.end() || lowering_.kernel_collector()->vector_bytes() == 0) return false;
  const Shape space = *place->second.space;
  Integers kept;
  Shape outer;
  std::int64_t row = 1;
  for (std::size_t axis = 0; axis < space.size(); ++axis) {
    const bool is_reduced = std::ranges::count(axes, static_cast<std::int64_t>(axis)) > 0;
    if (space[axis] > 1) row = is_reduced ? 1 : space[axis];
    if (is_reduced) continue;
    kept.push_back(static_cast<std::int64_t>(axis));
    outer.push_back(space[axis]);
  }
  if (row == 1 || row > kLongestRow) return false;
  if (!lowering_.is_tile() && element_count(outer) / row < kFewestResults) return false;
  MapGroup& group = open_.at(space).group;
  const Slot slot = place->second.slot;
  lowering_.consume_value(operand);
  group.reduced = {slot, reduction, along(lowering_.define_new(node), space, kept)};
  close(space);
  return true;
}

void Fusion::materialise(Value v) {
  if (const auto place = place_.find(v.index); place != place_.end()) close(Shape(*place->second.space));
}

void Fusion::before(const Shape& space) {
  for (auto group = open_.begin(); group != open_.end();) {
    const Shape& candidate = (group++)->first;
    if (candidate != space && element_count(candidate) > kLargeSpace) close(Shape(candidate));
  }
}

void Fusion::close_all() {
  while (!open_.empty()) close(Shape(open_.begin()->first));
}

void Fusion::close(const Shape& space) {
  const PassLog::Scope scope(lowering_.log(), BackendPass::fusion);
  const auto node = open_.extract(space);
  OpenGroup& closing = node.mapped();
  MapGroup& group = closing.group;
  bool stores = false;
  for (auto [value, slot] : closing.members) {
    place_.erase(value.index);
    if (lowering_.remaining_uses(value) == 0) continue;
    MapGroup::SlotInfo& info = group.slots[slot];
    if (info.view == MapGroup::kNoView) {
      info.view = static_cast<std::int32_t>(group.views.size());
      group.views.push_back(lowering_.define_new(value));
      stores = true;
    } else {
      lowering_.define(value, group.views[static_cast<std::size_t>(info.view)]);
    }
  }
  if (!stores && !group.reduced) return;
  const LoopReads all{closing.consumed, group.views};
  if (element_count(space) < kLargeSpace) {
    emit(group, all);
  } else {
    for (const MapGroup& part : independent_parts(group)) emit(part, all);
  }
  for (BufferId buffer : closing.consumed) lowering_.consume_buffer(buffer);
}

std::unique_ptr<Step> Fusion::kernel_step(const MapGroup& group) {
  const PassLog::Scope scope(lowering_.log(), BackendPass::kernels);
  return make_group_kernel_step(group, lowering_.kernel_collector(), lowering_.is_tile());
}

void Fusion::emit(const MapGroup& group, const LoopReads& all) {
  if (PassLog* const log = lowering_.log()) {
    log->count(BackendPass::fusion, static_cast<std::int64_t>(group.code.size()), 1);
    log->write(BackendPass::fusion, to_text(group));
  }
  if (lowering_.epilogues().emit(group, all)) return;
  std::unique_ptr<Step> step = kernel_step(group);
  if (!step && group.reduced) return emit_apart(group, all);
  std::vector<StridedView> reads, writes;
  for (const MapGroup::SlotInfo& slot : group.slots)
    if (slot.view != MapGroup::kNoView)
      (slot.is_input ? reads : writes).push_back(group.views[static_cast<std::size_t>(slot.view)]);
  if (!step)
    step = group.space.empty() ? make_scalar_step(group, lowering_.kernels())
                               : make_block_step(group, lowering_.kernels());
  if (group.reduced) writes.push_back(group.reduced->out);
  lowering_.emit(std::move(step), reads, writes);
}

/// The group, with what it reduces in memory, and then the reduction.
void Fusion::emit_apart(MapGroup group, const LoopReads& all) {
  const MapGroup::Reduced reduced = *std::exchange(group.reduced, std::nullopt);
  MapGroup::SlotInfo& info = group.slots[reduced.slot];
  if (info.view == MapGroup::kNoView) {
    info.view = static_cast<std::int32_t>(group.views.size());
    group.views.push_back(lowering_.temporary(info.dtype, group.space));
  }
  const StridedView operand = group.views[static_cast<std::size_t>(info.view)];
  emit(group, all);
  emit_reduction(lowering_, operand, reduced.reduction, reduced.out);
}

}  // namespace loipe::cpu
