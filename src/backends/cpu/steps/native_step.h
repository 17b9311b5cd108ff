// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "backends/cpu/step.h"
#include "ops/native.h"

namespace loipe::cpu {

/// One node of an op that has kernels of its own.
struct NativeCall {
  const ops::NativeEvaluation* native;
  Attributes attributes;
  std::vector<StridedView> operands;
  /// Per operand, what the node that made it left beside its result.
  std::vector<std::optional<StridedView>> operands_beside;
  StridedView out;  ///< contiguous
  std::optional<StridedView> beside;
  int threads;
};

std::unique_ptr<Step> make_native_step(NativeCall call);

}  // namespace loipe::cpu
