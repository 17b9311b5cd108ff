// SPDX-License-Identifier: Apache-2.0
#include "driver/transformer_file.h"

#include "base/text.h"
#include "driver/input_tensors.h"
#include "driver/model_metadata.h"

namespace loipe {

namespace {

const std::string kWeight = "weight.";

Shape stored_shape(const SafetensorsFile& file, const ModelMetadata& metadata, const std::string& name,
                   std::size_t rank) {
  if (!file.has(name))
    throw UserError(metadata.where() + " holds no tensor " + quote(name) + did_you_mean(name, file.names()));
  const TensorType type = file.type(name);
  if (type.shape.size() != rank)
    throw UserError("tensor " + quote(name) + " of " + metadata.where() + " is " + to_string(type) +
                    ", expected " + std::to_string(rank) + (rank == 1 ? " axis" : " axes"));
  return type.shape;
}

/// Sizes that metadata leave open are those of the first layer's weights.
TransformerModel model_of(const SafetensorsFile& file, const ModelMetadata& metadata) {
  TransformerModel model;
  model.arch = parse_transformer_arch(metadata.text("arch", transformer_arch_names()));
  model.layers = metadata.integer("layers", 0);
  model.heads = metadata.integer("heads", 1);
  model.causal = metadata.flag_or("causal", false);
  model.residual = metadata.flag_or("residual", true);
  model.scale = metadata.number("scale");
  model.window = metadata.integer_or("window", 0, 0);
  model.key_heads = metadata.integer_or("key_heads", model.heads, 1);
  model.activation = parse_activation(metadata.text_or("activation", "gelu", activation_names()));
  model.norm_eps = metadata.number("norm_eps");
  model.width = stored_shape(file, metadata, "X", 2)[1];
  if (model.layers == 0) return model;
  // The last one first: a number of layers that nobody has is found before their names are made.
  const bool is_stack = model.arch == TransformerArch::stack;
  stored_shape(file, metadata,
               kWeight + "layer" + std::to_string(model.layers - 1) + (is_stack ? ".W_Q" : ".ln1_gamma"),
               is_stack ? 2 : 1);
  const auto per_head = [&](const char* name, std::int64_t heads) {
    const std::int64_t columns = stored_shape(file, metadata, kWeight + "layer0." + name, 2)[1];
    if (columns % heads != 0)
      throw UserError("tensor " + quote(kWeight + "layer0." + name) + " of " + metadata.where() + " has " +
                      std::to_string(columns) + " columns, which " + std::to_string(heads) +
                      " heads do not divide");
    return columns / heads;
  };
  model.head_size = per_head("W_Q", model.heads);
  model.value_size = per_head("W_V", model.key_heads);
  if (!is_stack) model.hidden = stored_shape(file, metadata, kWeight + "layer0.W_1", 2)[1];
  return model;
}

void check_targets(const TransformerFile& model, const std::string& where, const Tensor& target) {
  if (model.loss != TransformerLoss::cross_entropy) return;
  for (std::int64_t i = 0; i < target.element_count(); ++i)
    if (target.at(i) < 0 || target.at(i) >= static_cast<double>(model.vocabulary))
      throw UserError("tensor \"target\" of " + where + " has " +
                      std::to_string(static_cast<std::int64_t>(target.at(i))) + " at [" + std::to_string(i) +
                      "], expected 0 to " + std::to_string(model.vocabulary - 1) + ", the columns of W_voc");
}

TensorType target_type(const TransformerFile& model, const SafetensorsFile& file) {
  if (model.loss == TransformerLoss::square) return {model.dtype, {model.tokens, model.model.width}};
  const bool is_narrow = file.has("target") && file.type("target").dtype == DType::i32;
  return {is_narrow ? DType::i32 : DType::i64, {model.tokens}};
}

DType dtype_of_model(const SafetensorsFile& file, const ModelMetadata& metadata) {
  const DType stored = file.type("X").dtype;
  if (!is_floating(stored))
    throw UserError("tensor \"X\" of " + metadata.where() + " is " + to_string(file.type("X")) +
                    ", expected a floating dtype");
  return stored;
}

}  // namespace

TransformerFile read_transformer(const std::string& path, std::optional<DType> dtype) {
  const SafetensorsFile file = SafetensorsFile::read(path);
  const ModelMetadata metadata(file, "file " + quote(path));
  TransformerFile result;
  result.model = model_of(file, metadata);
  const bool is_square = metadata.text_or("loss", "square", {"square", "cross_entropy"}) == "square";
  result.loss = is_square ? TransformerLoss::square : TransformerLoss::cross_entropy;
  result.tokens = stored_shape(file, metadata, "X", 2)[0];
  result.dtype = dtype.value_or(dtype_of_model(file, metadata));
  if (result.model.scale) check_scale(*result.model.scale, result.dtype);
  if (!is_square) {
    if (result.tokens == 0)
      throw UserError("file " + quote(path) +
                      " has no tokens: the mean of the cross-entropy over 0 tokens is "
                      "none; expected X with at least one row");
    result.vocabulary = stored_shape(file, metadata, kWeight + "W_voc", 2)[1];
  }
  result.arguments = {{"X", {result.dtype, {result.tokens, result.model.width}}},
                      {"target", target_type(result, file)}};
  for (Argument& weight : transformer_weights(result.model, result.dtype))
    result.arguments.push_back({kWeight + weight.name, std::move(weight.type)});
  if (!is_square)
    result.arguments.push_back({kWeight + "W_voc", {result.dtype, {result.model.width, result.vocabulary}}});
  std::vector<std::string> names;
  std::vector<TensorType> types;
  for (const auto& [name, type] : result.arguments) names.push_back(name), types.push_back(type);
  result.inputs = load_tensors(file, path, names, types);
  for (std::size_t i = 0; i < names.size(); ++i)
    check_finite("file " + quote(path), names[i], result.inputs[i]);
  check_targets(result, "file " + quote(path), result.inputs[1]);
  return result;
}

std::vector<Traced> TransformerFile::traced(std::span<const Traced> a) const {
  const bool is_square = loss == TransformerLoss::square;
  const Traced output = transformer(model, a[0], a.subspan(2, a.size() - (is_square ? 2 : 3)));
  const Traced number =
      is_square ? squared_error(output, a[1]) : cross_entropy(matmul(output, a.back()), a[1]);
  return {number, output};
}

}  // namespace loipe
