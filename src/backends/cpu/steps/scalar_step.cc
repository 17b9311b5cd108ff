// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/scalar_step.h"

#include <cmath>
#include <cstring>

#include "backends/cpu/steps/element.h"

namespace loipe::cpu {

namespace {

using Register = std::uint64_t;

struct ScalarInstruction {
  std::uint16_t code;
  std::uint32_t result, a, b, c;  ///< registers; for loads and stores `a` is a memory operand
};

constexpr std::uint16_t code_of(Opcode opcode, bool is_f64) {
  return static_cast<std::uint16_t>(static_cast<int>(opcode) * 2 + (is_f64 ? 1 : 0));
}
constexpr std::uint16_t kLoad = kOpcodeCount * 2, kStore = kLoad + 1;

template <class T>
T get(const Register& from) {
  T value;
  std::memcpy(&value, &from, sizeof(T));
  return value;
}
template <class T>
void set(Register& to, T value) {
  std::memcpy(&to, &value, sizeof(T));
}

struct MemoryOperand {
  BufferId buffer;
  std::int64_t byte_offset;
  std::uint32_t size;
};

class ScalarStep final : public Step {
 public:
  explicit ScalarStep(const KernelTable& kernels) : kernels_(kernels) {}

  void run(const RunContext& context) const override {
    Register* r = context.scratch_of<Register>(0);
    for (const ScalarInstruction& i : code_) execute(context, r, i);
  }
  std::size_t scratch_bytes() const override { return registers_ * sizeof(Register); }

 private:
  friend class ScalarStepBuilder;

  void execute(const RunContext& context, Register* r, const ScalarInstruction& i) const {
#define LOIPE_CASE(opcode, expression)                                       \
  case code_of(Opcode::opcode, false):                                       \
      return binary<float>(r, i, [](auto x, auto y) { return expression; }); \
  case code_of(Opcode::opcode, true): return binary<double>(r, i, [](auto x, auto y) { return expression; });
    switch (i.code) {
      LOIPE_CASE(add, x + y)
      LOIPE_CASE(sub, x - y)
      LOIPE_CASE(mul, x * y)
      LOIPE_CASE(div, x / y)
      LOIPE_CASE(neg, (static_cast<void>(y), -x))
      LOIPE_CASE(sqrt, (static_cast<void>(y), std::sqrt(x)))
      LOIPE_CASE(copy, (static_cast<void>(y), x))
      case kLoad: return load(context, r[i.result], memory_[i.a]);
      case kStore: return store(context, r[i.result], memory_[i.a]);
      default: return kernels_.map[i.code / 2][i.code % 2](&r[i.result], &r[i.a], &r[i.b], &r[i.c], 1);
    }
#undef LOIPE_CASE
  }

  template <class T, class F>
  static void binary(Register* r, const ScalarInstruction& i, F f) {
    set<T>(r[i.result], f(get<T>(r[i.a]), get<T>(r[i.b])));
  }
  static void load(const RunContext& context, Register& to, const MemoryOperand& from) {
    std::memcpy(&to, context.bases[from.buffer] + from.byte_offset, from.size);
  }
  static void store(const RunContext& context, const Register& from, const MemoryOperand& to) {
    std::memcpy(context.bases[to.buffer] + to.byte_offset, &from, to.size);
  }

  const KernelTable& kernels_;
  std::vector<ScalarInstruction> code_;
  std::vector<MemoryOperand> memory_;
  std::size_t registers_ = 0;
};

/// Assigns registers: loads before the first use, stores after the definition.
class ScalarStepBuilder {
 public:
  ScalarStepBuilder(const MapGroup& group, const KernelTable& kernels)
      : group_(group),
        register_of_(group.slots.size(), kNone),
        last_use_(last_uses(group)),
        step_(std::make_unique<ScalarStep>(kernels)) {}

  std::unique_ptr<Step> build() {
    step_->code_.reserve(group_.code.size() + group_.views.size());
    for (std::size_t i = 0; i < group_.code.size(); ++i) append(group_.code[i], static_cast<std::int64_t>(i));
    return std::move(step_);
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::int64_t kReleased = -2;

  std::uint32_t memory_operand(Slot slot) {
    const StridedView& view = group_.views[static_cast<std::size_t>(group_.slots[slot].view)];
    const std::size_t size = size_of(view.dtype);
    step_->memory_.push_back(
        {view.buffer, view.offset * static_cast<std::int64_t>(size), static_cast<std::uint32_t>(size)});
    return static_cast<std::uint32_t>(step_->memory_.size() - 1);
  }

  void append(const MapInstruction& instruction, std::int64_t position) {
    for (Slot source : instruction.sources) {
      if (register_of_[source] != kNone) continue;
      register_of_[source] = new_register();
      step_->code_.push_back({kLoad, register_of_[source], memory_operand(source), 0, 0});
    }
    const std::array<Slot, 3>& s = instruction.sources;
    const std::uint32_t result = register_of_[instruction.result] = new_register();
    step_->code_.push_back({code_of(instruction.opcode, instruction.is_f64), result, register_of_[s[0]],
                            register_of_[s[1]], register_of_[s[2]]});
    if (group_.slots[instruction.result].view != MapGroup::kNoView)
      step_->code_.push_back({kStore, result, memory_operand(instruction.result), 0, 0});
    for (Slot source : s) release(source, position);
    if (last_use_[instruction.result] < 0) free_.push_back(result);
  }

  std::uint32_t new_register() {
    if (free_.empty()) return static_cast<std::uint32_t>(step_->registers_++);
    const std::uint32_t last = free_.back();
    free_.pop_back();
    return last;
  }
  void release(Slot slot, std::int64_t position) {
    if (last_use_[slot] != position) return;
    free_.push_back(register_of_[slot]);
    last_use_[slot] = kReleased;
  }

  const MapGroup& group_;
  std::vector<std::uint32_t> register_of_;
  std::vector<std::int64_t> last_use_;
  std::vector<std::uint32_t> free_;
  std::unique_ptr<ScalarStep> step_;
};

}  // namespace

std::unique_ptr<Step> make_scalar_step(const MapGroup& group, const KernelTable& kernels) {
  return ScalarStepBuilder(group, kernels).build();
}

}  // namespace loipe::cpu
