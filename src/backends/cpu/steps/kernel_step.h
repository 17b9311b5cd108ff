// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/kernel_collector.h"
#include "backends/cpu/step.h"
#include "backends/cpu/steps/group_kernel.h"

namespace loipe::cpu {

/// Runs a compiled kernel, its tiles shared among threads. The kernel goes to the
/// collector, whose compile() must come before the first run. Null when the collector
/// does not take it.
std::unique_ptr<Step> make_kernel_step(PlacedKernel placed,
                                       const std::shared_ptr<KernelCollector>& collector);

/// The group as a compiled kernel if it is long enough to be worth compiling, for one
/// that runs several times in a run of the program also if it is shorter; else null.
std::unique_ptr<Step> make_group_kernel_step(const MapGroup& group,
                                             const std::shared_ptr<KernelCollector>& collector,
                                             bool is_repeated);

}  // namespace loipe::cpu
