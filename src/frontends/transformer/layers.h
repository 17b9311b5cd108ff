// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/transformer.h>

namespace loipe {

/// Of all layer normalisations.
inline constexpr double kNormEps = 1e-5;

/// The model with every size said, for models that can be (UserError).
TransformerModel completed(const TransformerModel& model);

/// What a layer takes, with names after "layer<l>.".
std::vector<Argument> layer_weights(const TransformerModel& model, DType dtype);

/// One layer, counted from 0: its weights in that order.
Traced transformer_layer(const TransformerModel& model, std::int64_t layer, const Traced& x,
                         std::span<const Traced> weights);

/// Scale and shift of the last normalisation; none for a stack.
std::vector<Argument> final_weights(const TransformerModel& model, DType dtype);

}  // namespace loipe
