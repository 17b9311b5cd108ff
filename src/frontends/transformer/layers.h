// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/transformer.h>

namespace loipe {

/// The model with every size and the eps of its norms said, for models that can be (UserError).
TransformerModel completed(const TransformerModel& model);

/// What a layer takes, with names after "layer<l>.".
std::vector<Argument> layer_weights(const TransformerModel& model, DType dtype);

/// One layer, counted from 0: its weights in that order.
Traced transformer_layer(const TransformerModel& model, std::int64_t layer, const Traced& x,
                         std::span<const Traced> weights);

/// Scale and shift of the last normalisation, of pre-norm models.
std::vector<Argument> final_weights(const TransformerModel& model, DType dtype);

}  // namespace loipe
