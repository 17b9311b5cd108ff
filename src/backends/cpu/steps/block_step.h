// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/step.h"
#include "backends/cpu/steps/map_group.h"

namespace loipe::cpu {

/// The group as a loop over blocks of a few hundred elements: every instruction
/// runs over one block before the next does, so that what lies between them stays
/// in the first-level cache. Blocks are independent and shared among threads.
std::unique_ptr<Step> make_block_step(const MapGroup& group, const KernelTable& kernels);

}  // namespace loipe::cpu
