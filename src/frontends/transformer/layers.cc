// SPDX-License-Identifier: Apache-2.0
#include "frontends/transformer/layers.h"

#include <loipe/attention.h>

#include <cmath>

#include "base/text.h"

namespace loipe {

namespace {

std::size_t place_of(std::string_view text, const std::vector<std::string>& names, std::string_view what) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return i;
  throw UserError("unknown " + std::string(what) + " '" + shortened(std::string(text)) + "'" +
                  did_you_mean(std::string(text), names) + ": expected " + join(names, ", "));
}

Traced activated(Activation activation, const Traced& x) {
  switch (activation) {
    case Activation::gelu: return gelu(x, GeluForm::tanh);
    case Activation::gelu_erf: return gelu(x, GeluForm::erf);
    case Activation::relu: return relu(x);
    case Activation::silu: return silu(x);
    case Activation::tanh: return tanh(x);
    case Activation::identity: return x;
  }
  throw InternalError("unknown activation");
}

/// x W + b, with b along the last axis.
Traced affine(const Traced& x, const Traced& weight, const Traced& bias) {
  const Traced product = matmul(x, weight);
  return product + broadcast_in_dim(bias, product.shape(), {1});
}

/// [tokens, heads size] as [heads, tokens, size].
Traced split_heads(const Traced& x, std::int64_t heads) {
  const Shape shape = x.shape();
  return transpose(reshape(x, {shape[0], heads, shape[1] / heads}), {1, 0, 2});
}

Traced merge_heads(const Traced& x) {
  const Shape shape = x.shape();
  return reshape(transpose(x, {1, 0, 2}), {shape[1], shape[0] * shape[2]});
}

Traced self_attention(const TransformerModel& model, std::int64_t layer, const Traced& q, const Traced& k,
                      const Traced& v) {
  AttentionOptions options;
  options.causal = model.causal;
  options.scale = model.scale;
  options.window = model.window;
  if (!model.approximation.empty())
    options.approximation =
        model.approximation[model.approximation.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
  return merge_heads(attention(split_heads(q, model.heads), split_heads(k, model.key_heads),
                               split_heads(v, model.key_heads), options));
}

Traced stack_layer(const TransformerModel& model, std::int64_t layer, const Traced& x,
                   std::span<const Traced> w) {
  const Traced attended = self_attention(model, layer, matmul(x, w[0]), matmul(x, w[1]), matmul(x, w[2]));
  const Traced z = model.residual ? x + attended : attended;
  const Traced f = activated(model.activation, matmul(z, w[3]));
  return model.residual ? z + f : f;
}

/// Attention, then an MLP, each added to its input. A norm stands before each of the two (pre-norm) or after
/// each sum (post-norm).
Traced attention_and_mlp(const TransformerModel& model, std::int64_t layer, const Traced& x,
                         std::span<const Traced> w) {
  const bool is_pre_norm = model.arch == TransformerArch::gpt;
  const auto norm = [&](const Traced& t, std::size_t at, bool is_here) {
    return is_here ? layer_norm(t, w[at], w[at + 1], *model.norm_eps) : t;
  };
  const Traced a = norm(x, 0, is_pre_norm);
  const Traced attended =
      self_attention(model, layer, affine(a, w[2], w[3]), affine(a, w[4], w[5]), affine(a, w[6], w[7]));
  const Traced z = norm(x + affine(attended, w[8], w[9]), 0, !is_pre_norm);
  const Traced hidden = affine(norm(z, 10, is_pre_norm), w[12], w[13]);
  return norm(z + affine(activated(model.activation, hidden), w[14], w[15]), 10, !is_pre_norm);
}

void expect_at_least(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least)
    throw UserError("transformer: " + std::string(what) + " is " + std::to_string(value) +
                    ", expected at least " + std::to_string(least));
}

}  // namespace

const std::vector<std::string>& transformer_arch_names() {
  static const std::vector<std::string> names{"stack", "gpt", "bert"};
  return names;
}

std::string to_string(TransformerArch arch) {
  return transformer_arch_names().at(static_cast<std::size_t>(arch));
}

TransformerArch parse_transformer_arch(std::string_view text) {
  return static_cast<TransformerArch>(place_of(text, transformer_arch_names(), "arch"));
}

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names{"gelu", "gelu_erf", "relu", "silu", "tanh", "identity"};
  return names;
}

Activation parse_activation(std::string_view text) {
  return static_cast<Activation>(place_of(text, activation_names(), "activation"));
}

TransformerModel completed(const TransformerModel& model) {
  TransformerModel full = model;
  expect_at_least("layers", full.layers, 0);
  expect_at_least("heads", full.heads, 1);
  expect_at_least("width", full.width, 1);
  if (full.key_heads == 0) full.key_heads = full.heads;
  if (full.key_heads < 0 || full.heads % full.key_heads != 0)
    throw UserError("transformer: " + std::to_string(full.heads) + " heads are no multiple of " +
                    std::to_string(full.key_heads) + " key heads");
  if ((full.head_size == 0 || full.value_size == 0) && full.width % full.heads != 0)
    throw UserError("transformer: " + std::to_string(full.heads) + " heads do not divide the width " +
                    std::to_string(full.width));
  if (full.head_size == 0) full.head_size = full.width / full.heads;
  if (full.value_size == 0) full.value_size = full.width / full.heads;
  if (full.hidden == 0) full.hidden = 4 * full.width;
  if (!full.norm_eps) full.norm_eps = full.arch == TransformerArch::bert ? 1e-12 : 1e-5;
  if (!(*full.norm_eps > 0) || std::isinf(*full.norm_eps))
    throw UserError("transformer: norm_eps is " + format_double(*full.norm_eps) +
                    ", expected a positive number");
  for (const auto& [what, value] :
       {std::pair("head_size", full.head_size), std::pair("value_size", full.value_size),
        std::pair("hidden", full.hidden)})
    expect_at_least(what, value, 1);
  if (full.approximation.size() > 1 && std::ssize(full.approximation) != full.layers)
    throw UserError("transformer: approximations for " + std::to_string(full.approximation.size()) +
                    " layers, expected one for all, or one for each of the " + std::to_string(full.layers));
  if (full.arch == TransformerArch::stack && full.heads * full.value_size != full.width)
    throw UserError("transformer: the heads of a stack have " + std::to_string(full.heads * full.value_size) +
                    " values together, expected the width " + std::to_string(full.width));
  return full;
}

std::vector<Argument> layer_weights(const TransformerModel& m, DType dtype) {
  const std::int64_t d = m.width, q = m.heads * m.head_size, k = m.key_heads * m.head_size,
                     v = m.key_heads * m.value_size, o = m.heads * m.value_size, h = m.hidden;
  std::vector<std::pair<const char*, Shape>> list;
  if (m.arch == TransformerArch::stack)
    list = {{"W_Q", {d, q}}, {"W_K", {d, k}}, {"W_V", {d, v}}, {"W_g", {d, d}}};
  else
    list = {{"ln1_gamma", {d}}, {"ln1_beta", {d}}, {"W_Q", {d, q}},    {"b_Q", {q}},
            {"W_K", {d, k}},    {"b_K", {k}},      {"W_V", {d, v}},    {"b_V", {v}},
            {"W_O", {o, d}},    {"b_O", {d}},      {"ln2_gamma", {d}}, {"ln2_beta", {d}},
            {"W_1", {d, h}},    {"b_1", {h}},      {"W_2", {h, d}},    {"b_2", {d}}};
  std::vector<Argument> weights;
  for (auto& [name, shape] : list) weights.push_back({name, {dtype, std::move(shape)}});
  return weights;
}

std::vector<Argument> final_weights(const TransformerModel& model, DType dtype) {
  if (model.arch != TransformerArch::gpt) return {};
  return {{"lnf_gamma", {dtype, {model.width}}}, {"lnf_beta", {dtype, {model.width}}}};
}

Traced transformer_layer(const TransformerModel& model, std::int64_t layer, const Traced& x,
                         std::span<const Traced> weights) {
  return model.arch == TransformerArch::stack ? stack_layer(model, layer, x, weights)
                                              : attention_and_mlp(model, layer, x, weights);
}

}  // namespace loipe
