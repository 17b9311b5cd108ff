// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/step.h"
#include "backends/cpu/steps/map_group.h"

namespace loipe::cpu {

/// A group over a single element as a small interpreter: registers of eight bytes,
/// and one loop over instructions that neither calls nor branches per operand kind.
std::unique_ptr<Step> make_scalar_step(const MapGroup& group, const KernelTable& kernels);

}  // namespace loipe::cpu
