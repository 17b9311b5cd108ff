// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/transformer.h>

#include <optional>
#include <string>
#include <vector>

#include "tensor/safetensors.h"

namespace loipe {

enum class TransformerLoss : std::uint8_t { square, cross_entropy };

/// What a model file holds: X [tokens, width], target, weight.<name>; metadata arch, layers,
/// heads, causal, residual, loss, scale, and, if wanted, activation, key_heads, window, norm_eps.
struct TransformerFile {
  TransformerModel model;
  TransformerLoss loss = TransformerLoss::square;
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;  ///< of weight.W_voc, for cross-entropy
  DType dtype = DType::f32;
  /// X, target, and weights: names in the file, types for the traced function.
  std::vector<Argument> arguments;
  std::vector<Tensor> inputs;  ///< in that order

  /// loss (one number) and output of the arguments.
  std::vector<Traced> traced(std::span<const Traced> arguments) const;
};

/// Reads and checks everything: shapes against the metadata, numbers for NaN and infinity
/// (UserError that names the tensor and the position), targets for the range of the
/// vocabulary. `dtype` overrides that of X.
TransformerFile read_transformer(const std::string& path, std::optional<DType> dtype);

}  // namespace loipe
