// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/step.h"
#include "backends/cpu/steps/map_group.h"
#include "base/rng.h"

namespace loipe::testing {

/// A group with memory for its views, one buffer each: inputs filled with numbers,
/// aligned to 64 bytes, guard zones around everything.
class RandomGroup {
 public:
  /// `exact`: only opcodes whose results do not depend on how they are computed.
  RandomGroup(std::uint64_t seed, const Shape& space, DType dtype, bool exact)
      : RandomGroup(seed, space, dtype, exact, {}) {}
  /// The last value is also reduced over some axes.
  RandomGroup(std::uint64_t seed, const Shape& space, DType dtype, bool exact,
              std::optional<cpu::Reduction> reduction);

  /// One function of one input.
  RandomGroup(std::uint64_t seed, const Shape& space, DType dtype, cpu::Opcode function);

  const cpu::MapGroup& group() const { return group_; }

  /// Fills the outputs with a pattern.
  void clear_outputs();
  /// Runs the step on the buffers.
  void run(const cpu::Step& step, int threads);
  /// Where each buffer starts.
  const std::vector<std::byte*>& bases() const { return bases_; }
  /// The bytes of all outputs, guards included.
  std::vector<std::vector<std::byte>> outputs() const;
  /// False if a byte outside the outputs was written.
  bool guards_hold() const;
  /// What differs first between two lists of outputs, or "". Relative to the larger of 1
  /// and the number, numbers may differ by `tolerance`; NaNs are equal.
  std::string difference(const std::vector<std::vector<std::byte>>& a,
                         const std::vector<std::vector<std::byte>>& b, double tolerance) const;

 private:
  static constexpr std::size_t kGuard = 128, kAlignment = 64;

  /// A number below `count`.
  std::size_t choose(std::size_t count) {
    return static_cast<std::size_t>(rng_.below(static_cast<std::int64_t>(count)));
  }
  cpu::Slot new_slot(DType dtype);
  void add_input(DType dtype);
  void add_output(cpu::Slot slot);
  void add_instruction();
  cpu::StridedView random_view(DType dtype);
  cpu::Slot pick(DType dtype);
  cpu::Slot add(cpu::Opcode opcode, DType result, std::vector<cpu::Slot> sources);
  void add_reduction(cpu::Reduction reduction);
  void allocate();
  bool is_output(std::size_t buffer) const;
  DType dtype_of(std::size_t buffer) const;

  Rng rng_;
  DType dtype_;
  bool exact_;
  cpu::MapGroup group_;
  std::vector<std::int64_t> elements_;  ///< per buffer
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::size_t> begins_;  ///< per buffer: of its bytes in the memory
  std::vector<std::byte*> bases_;
};

}  // namespace loipe::testing
