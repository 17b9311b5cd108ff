// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/block_step.h"

#include <algorithm>
#include <map>

#include "backends/cpu/steps/strided_read.h"
#include "backends/cpu/threads.h"

namespace loipe::cpu {

namespace {

constexpr std::int64_t kShortestBlock = 128, kLongestBlock = 1024;
/// Registers of one block together, about half of a first-level cache.
constexpr std::int64_t kRegisterBytes = 24 * 1024;
/// Blocks of one task: filling the uniform registers then costs little.
constexpr std::int64_t kBlocksPerTask = 8;

/// A memory operand that is used in place.
struct DirectOperand {
  std::uint32_t pointer;
  BufferId buffer;
  std::int64_t offset;
  std::int64_t element_size;
};

/// A memory operand that is copied to a register: once if it is one number for the
/// whole space, else for every block.
struct ReadOperand {
  std::uint32_t pointer;
  BufferId buffer;
  StridedRead read;
};

struct BlockRegister {
  std::uint32_t pointer;
  std::size_t element_size;
  std::size_t place = 0;  ///< in bytes, from the first register
};

struct BlockInstruction {
  MapKernel kernel;  ///< null: read operand number `result`
  std::uint32_t result;
  std::array<std::uint32_t, 3> sources;
};

class BlockStep final : public Step {
 public:
  void run(const RunContext& context) const override {
    const std::int64_t task_length = block_ * kBlocksPerTask;
    const std::int64_t tasks = (count_ + task_length - 1) / task_length;
    parallel_for(context.threads_for(count_ * weight_), tasks, [&](std::int64_t task, int thread) {
      std::byte** pointers = context.scratch_of<std::byte*>(thread);
      prepare(context, pointers);
      const std::int64_t end = std::min(count_, (task + 1) * task_length);
      for (std::int64_t start = task * task_length; start < end; start += block_)
        run_block(context, pointers, start, std::min(block_, end - start));
    });
  }

  std::size_t scratch_bytes() const override { return pointer_bytes() + register_bytes_; }

 private:
  friend class BlockStepBuilder;

  std::size_t pointer_bytes() const { return (pointer_count_ * sizeof(std::byte*) + 63) / 64 * 64; }

  void prepare(const RunContext& context, std::byte** pointers) const {
    std::byte* registers = reinterpret_cast<std::byte*>(pointers) + pointer_bytes();
    for (const BlockRegister& r : registers_) pointers[r.pointer] = registers + r.place;
    for (const ReadOperand& operand : uniform_)
      operand.read.read(context.bases[operand.buffer], 0, std::min(block_, count_),
                        pointers[operand.pointer]);
  }

  void run_block(const RunContext& context, std::byte** pointers, std::int64_t start,
                 std::int64_t length) const {
    for (const DirectOperand& operand : direct_)
      pointers[operand.pointer] =
          context.bases[operand.buffer] + (operand.offset + start) * operand.element_size;
    for (const BlockInstruction& i : code_) {
      if (i.kernel != nullptr) {
        i.kernel(pointers[i.result], pointers[i.sources[0]], pointers[i.sources[1]], pointers[i.sources[2]],
                 length);
      } else {
        const ReadOperand& operand = reads_[i.result];
        operand.read.read(context.bases[operand.buffer], start, length, pointers[operand.pointer]);
      }
    }
  }

  std::int64_t count_ = 0, block_ = 0, weight_ = 0;
  std::size_t pointer_count_ = 0;
  std::size_t register_bytes_ = 0;  ///< of all registers, per element
  std::vector<BlockRegister> registers_;
  std::vector<DirectOperand> direct_;
  std::vector<ReadOperand> uniform_, reads_;
  std::vector<BlockInstruction> code_;
};

/// Elementary operations that one instruction is worth per element.
std::int64_t weight_of(Opcode opcode) {
  if (opcode < Opcode::cbrt) return 1;
  return opcode < Opcode::add || (opcode > Opcode::div && opcode < Opcode::max) ? 16 : 1;
}

/// Chooses how each memory operand is read and assigns registers.
class BlockStepBuilder {
 public:
  BlockStepBuilder(const MapGroup& group, const KernelTable& kernels)
      : group_(group),
        kernels_(kernels),
        views_(group.views),
        space_(group.space),
        pointer_of_(group.slots.size(), kNoPointer),
        last_use_(last_uses(group)),
        is_reusable_(group.slots.size(), false),
        step_(std::make_unique<BlockStep>()) {}

  std::unique_ptr<Step> build() {
    step_->count_ = element_count(space_);
    collapse_space();
    for (Slot slot = 0; slot < group_.slots.size(); ++slot)
      if (group_.slots[slot].view != MapGroup::kNoView) place_memory_operand(slot);
    for (std::size_t i = 0; i < group_.code.size(); ++i) append(group_.code[i], static_cast<std::int64_t>(i));
    step_->pointer_count_ = pointers_;
    step_->block_ = block_length();
    place_registers();
    return std::move(step_);
  }

 private:
  static constexpr std::uint32_t kNoPointer = ~0u;

  /// As many elements as the registers may hold; rows that are read by transposing
  /// come whole, and several at a time.
  std::int64_t block_length() const {
    constexpr std::int64_t kRows = 16, kLongestRow = 1024;
    std::int64_t bytes = 1;
    for (const BlockRegister& r : step_->registers_) bytes += static_cast<std::int64_t>(r.element_size);
    const std::int64_t block = std::clamp(kRegisterBytes / bytes / 64 * 64, kShortestBlock, kLongestBlock);
    const bool transposes =
        std::ranges::any_of(step_->reads_, [](const ReadOperand& r) { return r.read.is_transposed(); });
    if (!transposes || step_->count_ == 0 || space_.back() > kLongestRow) return block;
    return space_.back() * std::max(kRows, block / space_.back());
  }

  void place_registers() {
    for (BlockRegister& r : step_->registers_) {
      r.place = step_->register_bytes_;
      step_->register_bytes_ += (r.element_size * static_cast<std::size_t>(step_->block_) + 63) / 64 * 64;
    }
  }

  void collapse_space() {
    std::vector<Integers*> strides;
    for (StridedView& view : views_) strides.push_back(&view.strides);
    collapse(space_, strides);
  }

  void place_memory_operand(Slot slot) {
    const MapGroup::SlotInfo& info = group_.slots[slot];
    const StridedView& view = views_[static_cast<std::size_t>(info.view)];
    const std::size_t size = size_of(info.dtype);
    if (view.strides == row_major_strides(space_)) {
      pointer_of_[slot] = pointers_++;
      step_->direct_.push_back(
          {pointer_of_[slot], view.buffer, view.offset, static_cast<std::int64_t>(size)});
    } else if (std::ranges::all_of(view.strides, [](std::int64_t stride) { return stride == 0; })) {
      pointer_of_[slot] = new_register(size);
      step_->uniform_.push_back({pointer_of_[slot], view.buffer, read_of(view, size)});
    }
  }

  StridedRead read_of(const StridedView& view, std::size_t size) const {
    return {size, view.offset, space_, view.strides, kernels_};
  }

  std::uint32_t new_register(std::size_t size) {
    std::vector<std::uint32_t>& free = free_[size];
    if (!free.empty()) {
      const std::uint32_t pointer = free.back();
      free.pop_back();
      return pointer;
    }
    step_->registers_.push_back({pointers_, size});
    return pointers_++;
  }

  void give_register(Slot slot) {
    pointer_of_[slot] = new_register(size_of(group_.slots[slot].dtype));
    is_reusable_[slot] = true;
  }

  /// The result's register is taken before those of the sources are free, so that
  /// they never overlap.
  void append(const MapInstruction& instruction, std::int64_t position) {
    for (Slot source : instruction.sources)
      if (pointer_of_[source] == kNoPointer) append_read(source);
    if (pointer_of_[instruction.result] == kNoPointer) give_register(instruction.result);
    BlockInstruction& i = step_->code_.emplace_back();
    i.kernel = kernels_.map[static_cast<int>(instruction.opcode)][instruction.is_f64];
    i.result = pointer_of_[instruction.result];
    for (std::size_t k = 0; k < 3; ++k) i.sources[k] = pointer_of_[instruction.sources[k]];
    step_->weight_ += weight_of(instruction.opcode);
    for (Slot source : instruction.sources) release(source, position);
  }

  void append_read(Slot slot) {
    const MapGroup::SlotInfo& info = group_.slots[slot];
    const StridedView& view = views_[static_cast<std::size_t>(info.view)];
    give_register(slot);
    step_->code_.push_back({nullptr, static_cast<std::uint32_t>(step_->reads_.size()), {}});
    step_->reads_.push_back({pointer_of_[slot], view.buffer, read_of(view, size_of(info.dtype))});
    step_->weight_ += 1;
  }

  void release(Slot slot, std::int64_t position) {
    if (last_use_[slot] != position || !is_reusable_[slot]) return;
    free_[size_of(group_.slots[slot].dtype)].push_back(pointer_of_[slot]);
    is_reusable_[slot] = false;
  }

  const MapGroup& group_;
  const KernelTable& kernels_;
  std::vector<StridedView> views_;
  Shape space_;
  std::vector<std::uint32_t> pointer_of_;
  std::vector<std::int64_t> last_use_;
  std::vector<bool> is_reusable_;  ///< slots in registers that others may have after the last use
  std::map<std::size_t, std::vector<std::uint32_t>> free_;  ///< registers by element size
  std::uint32_t pointers_ = 0;
  std::unique_ptr<BlockStep> step_;
};

}  // namespace

std::unique_ptr<Step> make_block_step(const MapGroup& group, const KernelTable& kernels) {
  return BlockStepBuilder(group, kernels).build();
}

}  // namespace loipe::cpu
