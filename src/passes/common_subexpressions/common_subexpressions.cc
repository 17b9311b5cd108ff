// SPDX-License-Identifier: Apache-2.0
#include "passes/common_subexpressions/common_subexpressions.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "ops/op_list.h"
#include "passes/rebuild.h"

namespace loipe::passes {

namespace {

bool is_commutative(const OpDef& op) {
  using namespace ops;
  constexpr const OpDef* kCommutative[] = {&op_add, &op_mul, &op_max, &op_min, &op_eq,
                                           &op_ne,  &op_and, &op_or,  &op_xor};
  return std::find(std::begin(kCommutative), std::end(kCommutative), &op) != std::end(kCommutative);
}

/// The first node of each kind. Nodes are compared by their canonical operands:
/// each one replaced by the first of its kind, sorted when the order means nothing.
class ValueNumbers {
 public:
  explicit ValueNumbers(const Program& program)
      : program_(program), slots_(std::bit_ceil(2 * program.size() + 1)) {}

  /// The first node of this one's kind; nodes must be asked for in order.
  Value first_like(Value node) {
    begins_.push_back(operands_.size());
    for (Value operand : program_.operands(node)) operands_.push_back(first_[operand.index]);
    if (is_commutative(program_.op(node)))
      std::sort(operands_.begin() + static_cast<std::ptrdiff_t>(begins_.back()), operands_.end());
    return first_.emplace_back(is_argument(program_, node) ? node : Value{find_or_add(node.index)});
  }

 private:
  std::span<const Value> canonical_operands(std::uint32_t node) const {
    return {operands_.data() + begins_[node], program_.node(Value{node}).operand_count};
  }

  /// One line of cache for most searches: long programs are larger than caches.
  std::uint32_t find_or_add(std::uint32_t index) {
    const std::uint64_t hash = hash_of(index);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t place = hash & (slots_.size() - 1);; place = (place + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[place];
      if (slot.index == kNone) {
        slot = {index, tag};
        return index;
      }
      if (slot.tag == tag && are_alike(slot.index, index)) return slot.index;
    }
  }

  std::uint64_t hash_of(std::uint32_t index) const {
    const Node& node = program_.node(Value{index});
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(node.op) ^ node.attributes;
    const auto mix = [&](std::uint64_t word) { hash = (hash ^ (hash >> 29) ^ word) * 0x9e3779b97f4a7c15u; };
    mix(node.operand_count);
    for (Value operand : canonical_operands(index)) mix(operand.index);
    return hash ^ (hash >> 32);
  }

  bool are_alike(std::uint32_t a, std::uint32_t b) const {
    const Node &x = program_.node(Value{a}), &y = program_.node(Value{b});
    // Attributes are interned, so equal ones have one number.
    return x.op == y.op && x.attributes == y.attributes &&
           std::ranges::equal(canonical_operands(a), canonical_operands(b));
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Slot {
    std::uint32_t index = kNone;
    std::uint32_t tag = 0;
  };

  const Program& program_;
  std::vector<Value> operands_;
  std::vector<std::size_t> begins_;
  std::vector<Value> first_;
  std::vector<Slot> slots_;  ///< open addressing; at most half of them are taken
};

}  // namespace

Program common_subexpressions(const Program& program) {
  Rebuild rebuild(program);
  ValueNumbers numbers(program);
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value node{i}, first = numbers.first_like(node);
    if (first == node) rebuild.copy(node);
    else rebuild.replace(node, rebuild.of(first));
  }
  return rebuild.finish();
}

}  // namespace loipe::passes
