// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/approximate_attention.h>
#include <loipe/trace.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Transformers as traced functions. A model is a description; its weights are arguments
/// with names. Any traced function of the output may be the loss, and every derivative of
/// loipe/derivative.h works on the whole:
///
///     const TransformerModel model{.layers = 2, .heads = 4, .width = 64, .causal = true};
///     std::vector<Argument> arguments{{"X", {DType::f32, {n, 64}}}};
///     for (Argument& weight : transformer_weights(model, DType::f32)) arguments.push_back(weight);
///     const auto loss = [&](std::span<const Traced> a) {
///       const Traced y = transformer(model, a[0], a.subspan(1));
///       return std::vector<Traced>{mean(square(y))};
///     };
///     auto gradient = derivative_of_function(DerivativeKind::gradient, loss, arguments);

namespace loipe {

enum class TransformerArch : std::uint8_t {
  /// Z = attention(T) with all heads side by side, plus T if residual; T = activation(Z W_g),
  /// plus Z if residual. No biases, no normalisation.
  stack,
  /// Pre-norm: T += attention(LN1 T) W_O + b_O; T += activation(LN2(T) W_1 + b_1) W_2 + b_2;
  /// at the end a layer norm. Queries, keys and values have biases.
  gpt,
  /// Post-norm: T = LN1(T + attention(T) W_O + b_O); T = LN2(T + activation(T W_1 + b_1) W_2 + b_2).
  /// The encoder of BERT has activation gelu_erf and is not causal.
  bert,
};
std::string to_string(TransformerArch arch);
const std::vector<std::string>& transformer_arch_names();
TransformerArch parse_transformer_arch(std::string_view text);  ///< UserError that suggests the nearest name

/// gelu is its tanh form, gelu_erf the one with the error function.
enum class Activation : std::uint8_t { gelu, gelu_erf, relu, silu, tanh, identity };
const std::vector<std::string>& activation_names();
Activation parse_activation(std::string_view text);  ///< UserError that suggests the nearest name

struct TransformerModel {
  TransformerArch arch = TransformerArch::gpt;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t width = 0;       ///< of a token, d
  std::int64_t key_heads = 0;   ///< 0: as many as heads; else heads are a multiple of it
  std::int64_t head_size = 0;   ///< of queries and keys; 0: width / heads
  std::int64_t value_size = 0;  ///< 0: width / heads; in a stack it has to be that
  std::int64_t hidden = 0;      ///< of the MLP of gpt and bert; 0: 4 width
  bool causal = false;
  bool residual = true;              ///< of stack
  std::optional<double> scale = {};  ///< of q . k; absent: 1 / sqrt(head size)
  std::int64_t window = 0;           ///< see AttentionOptions
  Activation activation = Activation::gelu;
  /// Of attention, for each layer: none or one for all layers, or as many as layers; in a layer one for all
  /// heads, or one for each key head.
  std::vector<std::vector<AttentionApproximation>> approximation = {};
  std::optional<double> norm_eps = {};  ///< added to variances, above 0; absent: 1e-5, for bert 1e-12
};

/// Names and types of the weights, in the order in which `transformer` takes them:
///   stack  layer<l>.W_Q, .W_K, .W_V, .W_g
///   gpt    layer<l>.ln1_gamma, .ln1_beta, .W_Q, .b_Q, .W_K, .b_K, .W_V, .b_V, .W_O, .b_O,
///          .ln2_gamma, .ln2_beta, .W_1, .b_1, .W_2, .b_2; lnf_gamma, lnf_beta
///   bert   those of gpt without the last two
/// A vector is a row, so W [in, out]. UserError for a model that cannot be.
std::vector<Argument> transformer_weights(const TransformerModel& model, DType dtype);

/// x [tokens, width] through all layers. UserError for weights of other shapes.
Traced transformer(const TransformerModel& model, const Traced& x, std::span<const Traced> weights);

/// Half of the sum of squared differences.
Traced squared_error(const Traced& output, const Traced& target);
/// The mean over rows of -log softmax(logits)[target], for logits [rows, classes] and
/// integers target [rows]; a target outside of the classes counts as logit 0.
Traced cross_entropy(const Traced& logits, const Traced& target);

}  // namespace loipe
