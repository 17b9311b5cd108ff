// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/step.h"
#include "ir/op_def.h"

namespace loipe::cpu {

/// The op's own evaluation on copies of the operands. It allocates.
std::unique_ptr<Step> make_reference_step(const OpDef& op, Attributes attributes,
                                          std::vector<StridedView> operands, const StridedView& out);

}  // namespace loipe::cpu
