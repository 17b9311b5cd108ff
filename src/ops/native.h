// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "attention/problem.h"
#include "ir/op_def.h"

namespace loipe::ops {

/// An operand in memory, of any strides (in elements).
struct NativeOperand {
  const std::byte* data;
  std::span<const std::int64_t> strides;
  /// What the evaluation of the node that made it left beside its result; null if unknown.
  const std::byte* beside;
};

struct NativeContext {
  std::span<const NativeOperand> operands;
  std::span<const TensorType* const> types;
  const Attributes& attributes;
  const TensorType& type;
  std::byte* result;  ///< row-major
  std::byte* beside;  ///< `beside_bytes` of them; null if nobody will read them
  std::span<std::byte> workspace;
  attention::Parallel parallel;
};

/// The evaluation of an op by kernels of its own, which back ends call where they would
/// else run its reference evaluation. Same result up to rounding, the same bits for any number of
/// threads; it allocates nothing.
struct NativeEvaluation {
  const OpDef* op;
  /// Of these calls; others are left to the reference evaluation.
  bool (*covers)(const CostContext& call);
  bool (*takes_strides)(const CostContext& call, std::size_t operand, std::span<const std::int64_t> strides);
  std::size_t (*workspace_bytes)(const CostContext& call, int threads);
  std::size_t (*beside_bytes)(const CostContext& call);
  void (*run)(const NativeContext& context);
};

/// Null for ops that have none.
const NativeEvaluation* native_evaluation(const OpDef& op);

}  // namespace loipe::ops
