// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/map_group.h"

#include <map>
#include <numeric>

namespace loipe::cpu {

std::string to_text(const MapGroup& group) {
  static constexpr const char* kNames[] = {
#define LOIPE_OPCODE(name, operands) #name,
#include "backends/cpu/kernels/opcodes.def"
#undef LOIPE_OPCODE
  };
  static constexpr std::size_t kOperands[] = {
#define LOIPE_OPCODE(name, operands) operands,
#include "backends/cpu/kernels/opcodes.def"
#undef LOIPE_OPCODE
  };
  const auto name = [](Slot slot) { return "s" + std::to_string(slot); };
  std::string text = "loop over " + to_string(group.space) + "\n";
  for (Slot slot = 0; slot < group.slots.size(); ++slot) {
    const MapGroup::SlotInfo& info = group.slots[slot];
    if (info.view == MapGroup::kNoView) continue;
    text += std::string(info.is_input ? "  read " : "  write ") + name(slot) + " " +
            to_text(group.views[static_cast<std::size_t>(info.view)]) + "\n";
  }
  for (const MapInstruction& instruction : group.code) {
    text += "  " + name(instruction.result) + " = " + kNames[static_cast<std::size_t>(instruction.opcode)];
    for (std::size_t k = 0; k < kOperands[static_cast<std::size_t>(instruction.opcode)]; ++k)
      text += " " + name(instruction.sources[k]);
    text += "\n";
  }
  return text;
}

std::vector<std::int64_t> last_uses(const MapGroup& group) {
  std::vector<std::int64_t> last(group.slots.size(), -1);
  for (std::size_t i = 0; i < group.code.size(); ++i)
    for (Slot source : group.code[i].sources) last[source] = static_cast<std::int64_t>(i);
  return last;
}

namespace {

/// Operands that repeat at least so often are small.
constexpr std::int64_t kSmallRepeats = 8;

bool is_small(const MapGroup& group, Slot slot) {
  if (!group.slots[slot].is_input) return false;
  const StridedView& view = group.views[static_cast<std::size_t>(group.slots[slot].view)];
  std::int64_t repeats = 1;
  for (std::size_t axis = 0; axis < group.space.size(); ++axis)
    if (view.strides[axis] == 0) repeats *= group.space[axis];
  return repeats >= kSmallRepeats;
}

/// Sets of slots that belong together.
class Components {
 public:
  explicit Components(const MapGroup& group) : parent_(group.slots.size()) {
    std::iota(parent_.begin(), parent_.end(), Slot{0});
    for (const MapInstruction& instruction : group.code)
      for (Slot source : instruction.sources)
        if (!is_small(group, source)) parent_[root(source)] = root(instruction.result);
  }
  Slot root(Slot slot) {
    while (parent_[slot] != slot) slot = parent_[slot] = parent_[parent_[slot]];
    return slot;
  }

 private:
  std::vector<Slot> parent_;
};

/// A part that grows by instructions; slots and views get new numbers.
class Part {
 public:
  explicit Part(const MapGroup& from) : from_(from) { part_.space = from.space; }

  void append(MapInstruction instruction) {
    for (Slot& source : instruction.sources) source = slot(source);
    instruction.result = slot(instruction.result);
    part_.code.push_back(instruction);
  }
  void reduce(MapGroup::Reduced reduced) {
    reduced.slot = slot(reduced.slot);
    part_.reduced = std::move(reduced);
    stores_ = true;
  }
  bool stores() const { return stores_; }
  MapGroup take() { return std::move(part_); }

 private:
  Slot slot(Slot old) {
    const auto [place, is_new] = number_.try_emplace(old, static_cast<Slot>(part_.slots.size()));
    if (!is_new) return place->second;
    MapGroup::SlotInfo info = from_.slots[old];
    if (info.view != MapGroup::kNoView) {
      stores_ = stores_ || !info.is_input;
      part_.views.push_back(from_.views[static_cast<std::size_t>(info.view)]);
      info.view = static_cast<std::int32_t>(part_.views.size() - 1);
    }
    part_.slots.push_back(info);
    return place->second;
  }

  const MapGroup& from_;
  MapGroup part_;
  std::map<Slot, Slot> number_;
  bool stores_ = false;
};

}  // namespace

std::vector<MapGroup> independent_parts(const MapGroup& group) {
  Components components(group);
  std::map<Slot, std::size_t> part_of;  // by root
  std::vector<Part> parts;
  for (const MapInstruction& instruction : group.code) {
    const auto [place, is_new] = part_of.try_emplace(components.root(instruction.result), parts.size());
    if (is_new) parts.emplace_back(group);
    parts[place->second].append(instruction);
  }
  if (group.reduced) parts[part_of.at(components.root(group.reduced->slot))].reduce(*group.reduced);
  std::vector<MapGroup> result;
  for (Part& part : parts)
    if (part.stores()) result.push_back(part.take());
  return result;
}

}  // namespace loipe::cpu
