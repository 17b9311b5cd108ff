// SPDX-License-Identifier: Apache-2.0
#include "agent/network.h"

#include <cmath>

#include "base/check.h"

namespace loipe::agent {

namespace {

constexpr double kMasked = -1e9;  ///< as a logit; finite, so that no derivative is NaN

/// How a weight starts.
enum class Start : std::uint8_t { zero, one, normal };

struct WeightSpec {
  std::string name;
  Shape shape;
  Start start;
};

std::vector<WeightSpec> weight_specs(const Architecture& a) {
  const std::int64_t w = a.width, h = a.hidden;
  std::vector<WeightSpec> specs{{"embed.weight", {kTokenFeatures, w}, Start::normal},
                                {"embed.bias", {w}, Start::zero},
                                {"pairs.weight", {a.heads, kPairFeatures}, Start::normal}};
  for (std::int64_t layer = 0; layer < a.layers; ++layer) {
    const std::string prefix = "layer" + std::to_string(layer) + ".";
    specs.push_back({prefix + "norm1.scale", {w}, Start::one});
    for (const char* name : {"query", "key", "value", "out"})
      specs.push_back({prefix + name, {w, w}, Start::normal});
    specs.push_back({prefix + "norm2.scale", {w}, Start::one});
    specs.push_back({prefix + "up.weight", {w, h}, Start::normal});
    specs.push_back({prefix + "up.bias", {h}, Start::zero});
    specs.push_back({prefix + "down.weight", {h, w}, Start::normal});
  }
  specs.push_back({"norm.scale", {w}, Start::one});
  specs.push_back({"policy.hidden", {w, w}, Start::normal});
  specs.push_back({"policy.weight", {w}, Start::zero});
  specs.push_back({"policy.prior", {}, Start::zero});
  specs.push_back({"value.hidden", {w, w}, Start::normal});
  specs.push_back({"value.weight", {w}, Start::zero});
  specs.push_back({"value.bias", {}, Start::zero});
  return specs;
}

/// Weights by position, in the order of weight_specs.
class WeightReader {
 public:
  explicit WeightReader(std::span<const Traced> weights) : weights_(weights) {}
  const Traced& next() { return weights_[place_++]; }

 private:
  std::span<const Traced> weights_;
  std::size_t place_ = 0;
};

/// x [B,n,k] times a matrix [k,m].
Traced linear(const Traced& x, const Traced& matrix) { return dot_general(x, matrix, {{2}, {0}}); }

/// [B,n,w] -> [B,heads,n,w/heads].
Traced split_heads(const Traced& x, std::int64_t heads) {
  const Shape shape = x.shape();
  return transpose(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

/// x [B,n,w] to the next x; bias [B,heads,n,n] is added to the attention logits.
Traced attention(const Traced& x, const Traced& bias, std::int64_t heads, WeightReader& weights) {
  const Shape shape = x.shape();
  const Traced normed = rms_norm(x, weights.next());
  const Traced query = split_heads(linear(normed, weights.next()), heads);
  const Traced key = split_heads(linear(normed, weights.next()), heads);
  const Traced value = split_heads(linear(normed, weights.next()), heads);
  const double scale = 1 / std::sqrt(static_cast<double>(shape[2] / heads));
  const Traced logits = dot_general(query, key, {{3}, {3}, {0, 1}, {0, 1}}) * scale + bias;
  const Traced mixed = dot_general(softmax(logits), value, {{3}, {2}, {0, 1}, {0, 1}});
  const Traced merged = reshape(transpose(mixed, {0, 2, 1, 3}), shape);
  return x + linear(merged, weights.next());
}

Traced feed_forward(const Traced& x, WeightReader& weights) {
  const Traced normed = rms_norm(x, weights.next());
  const Traced up = linear(normed, weights.next());
  const Traced hidden = silu(up + weights.next());
  return x + linear(hidden, weights.next());
}

/// pairs [B,f,n,n] to [B,heads,n,n]: sum over f of weight [heads,f] times pair feature, and
/// out of reach where there is no node (presence [B,n] of the key).
Traced pair_bias(const Traced& pairs, const Traced& presence, const Traced& weight, std::int64_t heads) {
  const Shape shape = pairs.shape();
  const std::int64_t B = shape[0], n = shape[2];
  Traced bias = broadcast_in_dim((1.0 - presence) * kMasked, {B, heads, n, n}, {0, 3});
  for (std::int64_t f = 0; f < kPairFeatures; ++f) {
    const Traced feature = slice(pairs, {0, f, 0, 0}, {B, f + 1, n, n});
    const Traced factor = reshape(slice(weight, {0, f}, {heads, f + 1}), {1, heads, 1, 1});
    bias += feature * factor;
  }
  return bias;
}

}  // namespace

void check_architecture(const Architecture& a) {
  const auto in = [](std::int64_t value, std::int64_t most) { return value >= 1 && value <= most; };
  if (!in(a.width, 512) || !in(a.heads, 32) || !in(a.layers, 32) || !in(a.hidden, 2048) ||
      a.width % a.heads != 0)
    throw UserError("a network of width " + std::to_string(a.width) + ", " + std::to_string(a.heads) +
                    " heads, " + std::to_string(a.layers) + " layers and " + std::to_string(a.hidden) +
                    " hidden units: expected a width of 1 to 512 that the heads (1 to 32) divide, 1 to 32 "
                    "layers and 1 to 2048 hidden units");
}

std::vector<Argument> weight_arguments(const Architecture& architecture) {
  std::vector<Argument> arguments;
  for (WeightSpec& spec : weight_specs(architecture))
    arguments.push_back({std::move(spec.name), {DType::f32, std::move(spec.shape)}});
  return arguments;
}

std::vector<Tensor> initial_weights(const Architecture& architecture, double prior, Rng& rng) {
  std::vector<Tensor> weights;
  for (const WeightSpec& spec : weight_specs(architecture)) {
    Tensor weight({DType::f32, spec.shape});
    const double deviation = 1 / std::sqrt(spec.shape.empty() ? 1.0 : static_cast<double>(spec.shape[0]));
    for (float& element : weight.elements<float>()) {
      if (spec.start == Start::one) element = 1;
      if (spec.start == Start::normal) element = static_cast<float>(deviation * rng.normal());
    }
    if (spec.name == "policy.prior") weight.set(0, prior);
    if (spec.name == "value.bias" && architecture.reference == Reference::summed_costs)
      weight.set(0, std::log(0.5));
    weights.push_back(std::move(weight));
  }
  return weights;
}

std::vector<Argument> observation_arguments(std::int64_t batch, std::int64_t tokens) {
  return {{"tokens", {DType::f32, {batch, tokens, kTokenFeatures}}},
          {"pairs", {DType::f32, {batch, kPairFeatures, tokens, tokens}}},
          {"presence", {DType::f32, {batch, tokens}}},
          {"legal", {DType::f32, {batch, tokens}}}};
}

Prediction predict(const Architecture& architecture, std::span<const Traced> weights,
                   std::span<const Traced> observation) {
  const Traced &tokens = observation[0], &presence = observation[2], &legal = observation[3];
  const std::int64_t B = tokens.shape()[0], n = tokens.shape()[1];
  WeightReader next(weights);
  Traced x = linear(tokens, next.next());
  x += next.next();
  const Traced bias = pair_bias(observation[1], presence, next.next(), architecture.heads);
  for (std::int64_t layer = 0; layer < architecture.layers; ++layer) {
    x = attention(x, bias, architecture.heads, next);
    x = feed_forward(x, next);
  }
  x = rms_norm(x, next.next());
  const Traced policy = silu(linear(x, next.next()));
  const Traced correction = dot_general(policy, next.next(), {{2}, {0}});
  const Traced score = reshape(slice(tokens, {0, 0, kScoreFeature}, {B, n, kScoreFeature + 1}), {B, n});
  const Traced logits = correction - next.next() * score + (1.0 - legal) * kMasked;

  const Traced count = max(sum(presence, {1}), 1.0);
  const Traced pooled = dot_general(x, presence, {{1}, {1}, {0}, {0}}) / reshape(count, {B, 1});
  const Traced hidden = silu(matmul(pooled, next.next()));
  const Traced value = matmul(hidden, next.next());
  return {logits, value + next.next()};
}

Traced training_loss(const Prediction& prediction, const Traced& policies, const Traced& values,
                     double value_weight) {
  const Traced entropy = -sum(policies * log_softmax(prediction.logits), {1});
  const Traced error = prediction.values - values;
  return mean(entropy) + 0.5 * value_weight * mean(error * error);
}

}  // namespace loipe::agent
