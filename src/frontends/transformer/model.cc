// SPDX-License-Identifier: Apache-2.0
#include "frontends/transformer/layers.h"

namespace loipe {

namespace {

void expect_weights(const TransformerModel& model, const Traced& x, std::span<const Traced> weights) {
  const std::vector<Argument> expected = transformer_weights(model, x.dtype());
  if (x.rank() != 2 || x.shape()[1] != model.width || !is_floating(x.dtype()))
    throw UserError("transformer: x is " + to_string(x.type()) +
                    ", expected floating point of shape [tokens, " + std::to_string(model.width) + "]");
  if (weights.size() != expected.size())
    throw UserError("transformer: " + std::to_string(weights.size()) + " weights, expected " +
                    std::to_string(expected.size()) + ", those of transformer_weights");
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i].type() != expected[i].type)
      throw UserError("transformer: weight " + expected[i].name + " is " + to_string(weights[i].type()) +
                      ", expected " + to_string(expected[i].type));
}

}  // namespace

std::vector<Argument> transformer_weights(const TransformerModel& model, DType dtype) {
  const TransformerModel full = completed(model);
  std::vector<Argument> weights;
  for (std::int64_t layer = 0; layer < full.layers; ++layer)
    for (Argument& weight : layer_weights(full, dtype))
      weights.push_back({"layer" + std::to_string(layer) + "." + weight.name, std::move(weight.type)});
  for (Argument& weight : final_weights(full, dtype)) weights.push_back(std::move(weight));
  return weights;
}

Traced transformer(const TransformerModel& model, const Traced& x, std::span<const Traced> weights) {
  const TransformerModel full = completed(model);
  expect_weights(full, x, weights);
  const std::size_t per_layer = layer_weights(full, x.dtype()).size();
  Traced t = x;
  for (std::int64_t layer = 0; layer < full.layers; ++layer)
    t = transformer_layer(full, layer, t,
                          weights.subspan(static_cast<std::size_t>(layer) * per_layer, per_layer));
  if (final_weights(full, x.dtype()).empty()) return t;
  return layer_norm(t, weights[weights.size() - 2], weights.back(), *full.norm_eps);
}

Traced squared_error(const Traced& output, const Traced& target) {
  return 0.5 * sum(square(output - target));
}

Traced cross_entropy(const Traced& logits, const Traced& target) {
  if (logits.rank() != 2 || target.shape() != Shape{logits.shape()[0]} || !is_integer(target.dtype()))
    throw UserError("cross_entropy: logits " + to_string(logits.type()) + " and target " +
                    to_string(target.type()) + ", expected [rows, classes] and integers [rows]");
  const Traced chosen = take_along_axis(logits, reshape(target, {target.shape()[0], 1}), 1);
  return mean(logsumexp(logits, {1}) - reshape(chosen, target.shape()));
}

}  // namespace loipe
