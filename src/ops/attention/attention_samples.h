// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_call.h"

namespace loipe::ops {

std::vector<const TensorType*> types_of(std::span<const Tensor* const> operands);

/// Calls of attention: grouped heads, causal, windows, masks, biases, one query, one key, none.
std::vector<Sample> attention_samples(Rng& rng);
/// Queries that see no key.
std::vector<Sample> attention_special_points(Rng& rng);

/// Some of those calls with the result of attention behind the operands, for its derivatives.
struct EvaluatedAttention {
  Sample sample;
  AttentionCall call;
  /// Appends a random operand [directions, shape...].
  void add_directions(Rng& rng, std::int64_t directions, const Shape& shape);
};
std::vector<EvaluatedAttention> evaluated_attention_samples(Rng& rng);

}  // namespace loipe::ops
