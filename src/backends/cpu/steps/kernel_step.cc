// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/kernel_step.h"

#include <array>

#include "backends/cpu/threads.h"

namespace loipe::cpu {

namespace {

/// Elementary operations of a group below which compiling it, some milliseconds,
/// is not worth it.
constexpr std::int64_t kWorthCompiling = 1 << 14;
/// Vectors do about so many elementary operations while a scalar loop does one.
constexpr std::int64_t kSpeedup = 4;
/// Accesses of a kernel; their addresses are collected on the stack.
constexpr std::size_t kMostAccesses = 128;

class KernelStep final : public Step {
 public:
  KernelStep(const PlacedKernel& placed, const kernel::Function* function,
             std::shared_ptr<KernelCollector> collector)
      : places_(placed.places),
        tiles_(placed.kernel.tiles()),
        operations_(placed.element_cost * element_count(placed.kernel.extents)),
        function_(function),
        collector_(std::move(collector)) {}

  void run(const RunContext& context) const override {
    std::array<std::byte*, kMostAccesses> bases;
    for (std::size_t k = 0; k < places_.size(); ++k)
      bases[k] = context.bases[places_[k].buffer] + places_[k].byte_offset;
    const int threads = context.threads_for(operations_ / kSpeedup);
    if (threads == 1) return (*function_)(bases.data(), 0, tiles_);
    parallel_for(threads, tiles_,
                 [&](std::int64_t tile, int) { (*function_)(bases.data(), tile, tile + 1); });
  }

 private:
  std::vector<PlacedKernel::Place> places_;
  std::int64_t tiles_, operations_;
  const kernel::Function* function_;
  std::shared_ptr<KernelCollector> collector_;  ///< owns the function
};

}  // namespace

std::unique_ptr<Step> make_kernel_step(PlacedKernel placed,
                                       const std::shared_ptr<KernelCollector>& collector) {
  if (placed.places.size() > kMostAccesses) return nullptr;
  const kernel::Function* function = collector->add(placed.kernel);
  if (function == nullptr) return nullptr;
  return std::make_unique<KernelStep>(placed, function, collector);
}

std::unique_ptr<Step> make_group_kernel_step(const MapGroup& group,
                                             const std::shared_ptr<KernelCollector>& collector) {
  const auto instructions = static_cast<std::int64_t>(group.code.size());
  if (collector->vector_bytes() == 0 || element_count(group.space) * instructions < kWorthCompiling)
    return nullptr;
  std::optional<PlacedKernel> placed = kernel_of(group, collector->vector_bytes());
  return placed ? make_kernel_step(*std::move(placed), collector) : nullptr;
}

}  // namespace loipe::cpu
