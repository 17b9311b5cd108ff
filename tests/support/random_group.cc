// SPDX-License-Identifier: Apache-2.0
#include "support/random_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace loipe::testing {

using cpu::MapGroup;
using cpu::Opcode;
using cpu::Slot;
using cpu::StridedView;

namespace {

constexpr std::byte kFill{0xA5};

DType other_float(DType dtype) { return dtype == DType::f32 ? DType::f64 : DType::f32; }

}  // namespace

RandomGroup::RandomGroup(std::uint64_t seed, const Shape& space, DType dtype, bool exact,
                         std::optional<cpu::Reduction> reduction)
    : rng_(seed), dtype_(dtype), exact_(exact) {
  group_.space = space;
  for (int k = 0; k < 3; ++k) add_input(dtype);
  add_input(DType::boolean);
  if (choose(3) == 0) add_input(other_float(dtype));
  if (choose(4) == 0) add_input(choose(2) == 0 ? DType::i32 : DType::i64);
  for (int k = 0; k < 12; ++k) add_instruction();
  // The last values, and one in the middle.
  add_output(group_.code.back().result);
  if (const Slot middle = group_.code[group_.code.size() / 2].result;
      group_.slots[middle].view == MapGroup::kNoView)
    add_output(middle);
  if (reduction) add_reduction(*reduction);
  allocate();
}

RandomGroup::RandomGroup(std::uint64_t seed, const Shape& space, DType dtype, cpu::Opcode function)
    : rng_(seed), dtype_(dtype), exact_(false) {
  group_.space = space;
  add_input(dtype);
  add_output(add(function, dtype, {0}));
  allocate();
}

void RandomGroup::add_reduction(cpu::Reduction reduction) {
  Integers kept;
  Shape shape;
  const std::size_t rank = group_.space.size(), chosen = choose(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (axis == chosen || choose(3) == 0) continue;
    kept.push_back(static_cast<std::int64_t>(axis));
    shape.push_back(group_.space[axis]);
  }
  const auto buffer = static_cast<cpu::BufferId>(group_.views.size());
  const cpu::StridedView out = cpu::contiguous_view(buffer, dtype_, shape);
  group_.reduced = {pick(dtype_), reduction, cpu::along(out, group_.space, kept)};
  elements_.push_back(element_count(shape));
}

DType RandomGroup::dtype_of(std::size_t buffer) const {
  return buffer < group_.views.size() ? group_.views[buffer].dtype : group_.reduced->out.dtype;
}

Slot RandomGroup::new_slot(DType dtype) {
  group_.slots.push_back({dtype});
  return static_cast<Slot>(group_.slots.size() - 1);
}

/// Axes in any order, broadcast, or with gaps.
StridedView RandomGroup::random_view(DType dtype) {
  const std::size_t rank = group_.space.size();
  std::vector<std::size_t> order(rank);
  for (std::size_t k = 0; k < rank; ++k) order[k] = k;
  if (choose(2) == 0)
    for (std::size_t k = rank; k > 1; --k) std::swap(order[k - 1], order[choose(k)]);
  StridedView view{static_cast<cpu::BufferId>(group_.views.size()), dtype, 0, group_.space,
                   Integers(rank, 0)};
  view.offset = static_cast<std::int64_t>(choose(4));
  std::int64_t stride = choose(6) == 0 ? 2 : 1;
  for (std::size_t k = rank; k-- > 0;) {
    if (choose(4) == 0) continue;
    view.strides[order[k]] = stride;
    stride *= group_.space[order[k]] + (choose(6) == 0 ? 3 : 0);
  }
  elements_.push_back(view.offset + stride);
  return view;
}

void RandomGroup::add_input(DType dtype) {
  const Slot slot = new_slot(dtype);
  group_.slots[slot].view = static_cast<std::int32_t>(group_.views.size());
  group_.slots[slot].is_input = true;
  group_.views.push_back(random_view(dtype));
}

void RandomGroup::add_output(Slot slot) {
  group_.slots[slot].view = static_cast<std::int32_t>(group_.views.size());
  const auto buffer = static_cast<cpu::BufferId>(group_.views.size());
  group_.views.push_back(cpu::contiguous_view(buffer, group_.slots[slot].dtype, group_.space));
  elements_.push_back(element_count(group_.space));
}

Slot RandomGroup::pick(DType dtype) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < group_.slots.size(); ++slot)
    if (group_.slots[slot].dtype == dtype) slots.push_back(slot);
  return slots[choose(slots.size())];
}

Slot RandomGroup::add(Opcode opcode, DType result, std::vector<Slot> sources) {
  const bool is_f64 = is_floating(result) ? result == DType::f64 : dtype_ == DType::f64;
  const Slot slot = new_slot(result);
  cpu::MapInstruction instruction{opcode, is_f64, slot, {}};
  for (std::size_t k = 0; k < 3; ++k) instruction.sources[k] = sources[k < sources.size() ? k : 0];
  group_.code.push_back(instruction);
  return slot;
}

void RandomGroup::add_instruction() {
  const Slot x = pick(dtype_), y = pick(dtype_), m = pick(DType::boolean);
  constexpr Opcode kUnary[] = {Opcode::neg,  Opcode::abs,   Opcode::sign,  Opcode::floor,
                               Opcode::ceil, Opcode::round, Opcode::rsqrt, Opcode::copy};
  constexpr Opcode kBinary[] = {Opcode::add, Opcode::sub, Opcode::mul, Opcode::div, Opcode::max, Opcode::min};
  constexpr Opcode kFunctions[] = {Opcode::tanh, Opcode::logistic, Opcode::sin,  Opcode::cos,
                                   Opcode::erf,  Opcode::atan,     Opcode::asinh};
  constexpr Opcode kCompare[] = {Opcode::eq, Opcode::ne, Opcode::lt, Opcode::le, Opcode::gt, Opcode::ge};
  constexpr Opcode kLogic[] = {Opcode::bool_and, Opcode::bool_or, Opcode::bool_xor, Opcode::bool_equal};
  switch (choose(exact_ ? 10 : 8)) {
    case 0: add(Opcode::select, dtype_, {m, x, y}); return;
    case 1: add(Opcode::masked, dtype_, {m, x}); return;
    case 2: add(Opcode::from_bool, dtype_, {m}); return;
    case 3: {
      for (Slot slot = 0; slot < group_.slots.size(); ++slot) {
        const DType from = group_.slots[slot].dtype;
        if (from == other_float(dtype_)) add(Opcode::from_other_float, dtype_, {slot});
        else if (from == DType::i32) add(Opcode::from_i32, dtype_, {slot});
        else if (from == DType::i64) add(Opcode::from_i64, dtype_, {slot});
      }
      add(kLogic[choose(std::size(kLogic))], DType::boolean, {m, pick(DType::boolean)});
      return;
    }
    case 4:
      if (exact_) add(kUnary[choose(std::size(kUnary))], dtype_, {x});
      else add(kFunctions[choose(std::size(kFunctions))], dtype_, {x});
      return;
    case 8: add(kCompare[choose(std::size(kCompare))], DType::boolean, {x, y}); return;
    case 9: add(choose(2) == 0 ? Opcode::to_bool : Opcode::bool_not, DType::boolean, {m}); break;
    default:
      // Functions magnify differences less when their arguments stay small.
      if (exact_) add(kBinary[choose(std::size(kBinary))], dtype_, {x, y});
      else add(kBinary[choose(2)], dtype_, {x, y});
  }
  // `to_bool` takes a number.
  if (group_.code.back().opcode == Opcode::to_bool) group_.code.back().sources = {x, x, x};
}

void RandomGroup::allocate() {
  for (std::size_t k = 0; k < elements_.size(); ++k) {
    const DType dtype = dtype_of(k);
    const std::size_t size = size_of(dtype);
    std::vector<std::byte>& bytes =
        memory_.emplace_back(static_cast<std::size_t>(elements_[k]) * size + 3 * kGuard, kFill);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment;
    begins_.push_back(kGuard + (past == 0 ? 0 : kAlignment - past));
    if (!is_output(k))
      for (std::int64_t i = 0; i < elements_[k]; ++i) {
        std::byte* at = bytes.data() + begins_[k] + static_cast<std::size_t>(i) * size;
        const auto put = [at](auto value) { std::memcpy(at, &value, sizeof value); };
        const double number = choose(16) == 0 ? static_cast<double>(choose(3)) : rng_.uniform(-2, 2);
        if (dtype == DType::f32) put(static_cast<float>(number));
        else if (dtype == DType::f64) put(number);
        else if (dtype == DType::boolean) put(static_cast<std::uint8_t>(choose(2)));
        else if (dtype == DType::i32) put(static_cast<std::int32_t>(choose(9)) - 4);
        else put(static_cast<std::int64_t>(choose(9)) - 4);
      }
  }
  for (std::size_t k = 0; k < memory_.size(); ++k) bases_.push_back(memory_[k].data() + begins_[k]);
}

bool RandomGroup::is_output(std::size_t view) const {
  return view == group_.views.size() ||
         std::ranges::any_of(group_.slots, [view](const MapGroup::SlotInfo& slot) {
           return slot.view == static_cast<std::int32_t>(view) && !slot.is_input;
         });
}

void RandomGroup::clear_outputs() {
  for (std::size_t k = 0; k < memory_.size(); ++k)
    if (is_output(k)) std::ranges::fill(memory_[k], kFill);
}

void RandomGroup::run(const cpu::Step& step, int threads) {
  const std::size_t stride = (step.scratch_bytes() + 63) / 64 * 64;
  std::vector<std::byte> scratch(stride * static_cast<std::size_t>(threads) + 64),
      shared(step.shared_bytes() + 64);
  const auto aligned = [](std::vector<std::byte>& bytes) {
    return bytes.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64) % 64;
  };
  step.run({bases_.data(), aligned(scratch), stride, aligned(shared), threads});
}

std::vector<std::vector<std::byte>> RandomGroup::outputs() const {
  std::vector<std::vector<std::byte>> result;
  for (std::size_t k = 0; k < memory_.size(); ++k)
    if (is_output(k)) result.push_back(memory_[k]);
  return result;
}

bool RandomGroup::guards_hold() const {
  for (std::size_t k = 0; k < memory_.size(); ++k) {
    const auto begin = memory_[k].begin() + static_cast<std::ptrdiff_t>(begins_[k]);
    const auto end = begin + elements_[k] * static_cast<std::ptrdiff_t>(size_of(dtype_of(k)));
    const auto is_fill = [](std::byte b) { return b == kFill; };
    if (!std::all_of(memory_[k].begin(), begin, is_fill) || !std::all_of(end, memory_[k].end(), is_fill))
      return false;
  }
  return true;
}

std::string RandomGroup::difference(const std::vector<std::vector<std::byte>>& a,
                                    const std::vector<std::vector<std::byte>>& b, double tolerance) const {
  std::size_t output = 0;
  for (std::size_t view = 0; view < memory_.size(); ++view) {
    if (!is_output(view)) continue;
    const DType dtype = dtype_of(view);
    for (std::int64_t i = 0; i < elements_[view]; ++i) {
      const auto number = [&](const std::vector<std::byte>& bytes) {
        const std::byte* at = bytes.data() + begins_[view] + static_cast<std::size_t>(i) * size_of(dtype);
        float f32;
        double f64;
        if (dtype == DType::f64) return std::memcpy(&f64, at, sizeof f64), f64;
        if (dtype == DType::f32) return std::memcpy(&f32, at, sizeof f32), static_cast<double>(f32);
        return static_cast<double>(std::to_integer<int>(*at));
      };
      const double x = number(a[output]), y = number(b[output]);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (!(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y))))
        return "element " + std::to_string(i) + " of output " + std::to_string(output) + ": " +
               std::to_string(x) + " and " + std::to_string(y);
    }
    ++output;
  }
  return "";
}

}  // namespace loipe::testing
