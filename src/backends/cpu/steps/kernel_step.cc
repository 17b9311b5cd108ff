// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/kernel_step.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "backends/cpu/threads.h"

namespace loipe::cpu {

namespace {

/// Elementary operations of a group below which compiling it, some milliseconds,
/// is not worth it.
constexpr std::int64_t kWorthCompiling = 1 << 14, kRepeatedWorthCompiling = 1 << 11;
/// Vectors do about so many elementary operations while a scalar loop does one.
constexpr std::int64_t kSpeedup = 4;
/// Accesses of a kernel; their addresses are collected on the stack.
constexpr std::size_t kMostAccesses = 128;

/// Bytes of a result that would drive everything else out of the caches, and be gone
/// itself before it is read.
constexpr std::int64_t kStreamedBytes = std::int64_t{32} << 20;

bool is_aligned(const kernel::Kernel& kernel, const kernel::Access& access) {
  for (std::size_t loop = 0; loop + 1 < kernel.rank(); ++loop)
    if (access.strides[loop] % kernel.lanes != 0) return false;
  return kernel.extents.back() % kernel.step() == 0 && size_of(access.dtype) >= sizeof(float);
}

/// The same kernel that writes large results past the caches, where it has any.
std::optional<kernel::Kernel> streaming(const kernel::Kernel& kernel) {
#if defined(__x86_64__)
  if (kernel.reduced_loops > 0) return std::nullopt;  // results are small then
  const std::int64_t elements = element_count(kernel.extents);
  kernel::Kernel result = kernel;
  bool streams = false;
  for (kernel::Access& access : result.accesses) {
    if (!access.is_written || elements * static_cast<std::int64_t>(size_of(access.dtype)) < kStreamedBytes)
      continue;
    access.is_streamed = is_aligned(kernel, access);
    streams = streams || access.is_streamed;
  }
  if (streams) return result;
#endif
  return std::nullopt;
}

/// A kernel, and a faster one that needs its written bases aligned.
struct Functions {
  const kernel::Function* any;
  const kernel::Function* aligned;  ///< null without one
};

class KernelStep final : public Step {
 public:
  KernelStep(const PlacedKernel& placed, Functions functions, std::shared_ptr<KernelCollector> collector)
      : places_(placed.places),
        accesses_(placed.kernel.accesses),
        tiles_(placed.kernel.tiles()),
        operations_(placed.element_cost * element_count(placed.kernel.extents)),
        functions_(functions),
        collector_(std::move(collector)) {}

  void run(const RunContext& context) const override {
    std::array<std::byte*, kMostAccesses + kernel::kHelpers> bases;
    for (std::size_t k = 0; k < places_.size(); ++k)
      bases[k] = context.bases[places_[k].buffer] + places_[k].byte_offset;
    bases[places_.size()] = reinterpret_cast<std::byte*>(collector_->helpers().transpose_f32);
    bases[places_.size() + 1] = reinterpret_cast<std::byte*>(collector_->helpers().transpose_f64);
    const int threads = context.threads_for(operations_ / kSpeedup);
    const kernel::Function function = function_for(bases.data());
    if (threads == 1) return function(bases.data(), 0, tiles_);
    parallel_for(threads, tiles_, [&](std::int64_t tile, int) { function(bases.data(), tile, tile + 1); });
  }

 private:
  kernel::Function function_for(std::byte* const* bases) const {
    constexpr std::uintptr_t kAlignment = 64;
    if (functions_.aligned == nullptr) return *functions_.any;
    for (std::size_t k = 0; k < places_.size(); ++k)
      if (accesses_[k].is_written && reinterpret_cast<std::uintptr_t>(bases[k]) % kAlignment != 0)
        return *functions_.any;
    return *functions_.aligned;
  }

  std::vector<PlacedKernel::Place> places_;
  std::vector<kernel::Access> accesses_;
  std::int64_t tiles_, operations_;
  Functions functions_;
  std::shared_ptr<KernelCollector> collector_;  ///< owns the functions
};

/// Whether a kernel rounds otherwise than steps in memory: by functions of the C library, of which it
/// calls the vector forms. Programs run whole and in tiles of all sizes with the same bits, and a
/// group is a kernel or not by its size; so such groups are never kernels.
bool has_other_bits(const MapGroup& group) {
  return std::ranges::any_of(group.code, [](const MapInstruction& instruction) {
    const Opcode opcode = instruction.opcode;
    const bool is_inline = opcode == Opcode::exp || opcode == Opcode::expm1 || opcode == Opcode::log ||
                           opcode == Opcode::logistic || opcode == Opcode::tanh;
    return !is_inline && ((opcode >= Opcode::cbrt && opcode < Opcode::add) ||
                          (opcode > Opcode::div && opcode < Opcode::max));
  });
}

}  // namespace

std::unique_ptr<Step> make_kernel_step(PlacedKernel placed,
                                       const std::shared_ptr<KernelCollector>& collector) {
  if (placed.places.size() > kMostAccesses) return nullptr;
  Functions functions{collector->add(placed.kernel), nullptr};
  if (functions.any == nullptr) return nullptr;
  if (const std::optional<kernel::Kernel> aligned = streaming(placed.kernel))
    functions.aligned = collector->add(*aligned);
  return std::make_unique<KernelStep>(placed, functions, collector);
}

std::unique_ptr<Step> make_group_kernel_step(const MapGroup& group,
                                             const std::shared_ptr<KernelCollector>& collector,
                                             bool is_repeated) {
  const std::int64_t least = is_repeated ? kRepeatedWorthCompiling : kWorthCompiling;
  if (has_other_bits(group)) return nullptr;
  const auto instructions = static_cast<std::int64_t>(group.code.size()) + (group.reduced ? 1 : 0);
  if (collector->vector_bytes() == 0 || element_count(group.space) * instructions < least) return nullptr;
  std::optional<PlacedKernel> placed = kernel_of(group, collector->vector_bytes());
  // One lane would call libm for the functions that more lanes compute inline.
  if (!placed || placed->kernel.lanes == 1) return nullptr;
  return make_kernel_step(*std::move(placed), collector);
}

}  // namespace loipe::cpu
