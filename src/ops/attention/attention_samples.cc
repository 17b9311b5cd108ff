// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_samples.h"

#include "ops/op_list.h"
#include "ops/samples.h"

namespace loipe::ops {

namespace {

struct Sizes {
  std::int64_t heads = 1, groups = 1, queries = 2, keys = 2, head_size = 2, value_size = 2;
};
struct Options {
  bool is_causal = false;
  std::int64_t window = 0;
  std::vector<double> mask = {};  ///< of one head of keys, for all
  Shape bias = {};
};

Tensor draw(Rng& rng, const Shape& shape) { return draw_tensor(rng, DType::f64, shape, between<-1.0, 1.0>); }

Sample attention_sample(Rng& rng, const Sizes& s, const Options& options = {}) {
  Sample sample{{draw(rng, {s.heads, s.groups, s.queries, s.head_size}),
                 draw(rng, {s.heads, s.keys, s.head_size}), draw(rng, {s.heads, s.keys, s.value_size})},
                {{"scale", 0.75}, {"causal", std::int64_t{options.is_causal}}}};
  if (options.window > 0) sample.attributes.set("window", options.window);
  if (!options.mask.empty()) {
    Tensor mask({DType::boolean, {1, s.keys}});
    for (std::size_t j = 0; j < options.mask.size(); ++j)
      mask.set(static_cast<std::int64_t>(j), options.mask[j]);
    sample.operands.push_back(std::move(mask));
    sample.attributes.set("mask", std::int64_t{1});
  }
  if (!options.bias.empty()) {
    sample.operands.push_back(draw(rng, options.bias));
    sample.attributes.set("bias", std::int64_t{1});
  }
  return sample;
}

}  // namespace

std::vector<const TensorType*> types_of(std::span<const Tensor* const> operands) {
  std::vector<const TensorType*> types;
  for (const Tensor* operand : operands) types.push_back(&operand->type());
  return types;
}

std::vector<Sample> attention_samples(Rng& rng) {
  return {
      attention_sample(rng, {1, 1, 2, 3, 2, 1}),
      attention_sample(rng, {2, 1, 3, 3, 1, 2}, {.is_causal = true}),
      attention_sample(rng, {1, 2, 2, 2, 2, 2}, {.is_causal = true}),
      attention_sample(rng, {1, 1, 3, 3, 2, 1}, {.window = 2}),
      attention_sample(rng, {1, 1, 2, 3, 2, 2}, {.mask = {1, 0, 1}}),
      attention_sample(rng, {2, 1, 2, 2, 1, 1}, {.bias = {1, 1, 2, 2}}),
      attention_sample(rng, {1, 1, 3, 3, 1, 1}, {.is_causal = true, .mask = {1, 1, 0}, .bias = {1, 1, 1, 3}}),
      attention_sample(rng, {1, 1, 1, 1, 1, 1}),
      attention_sample(rng, {1, 1, 0, 2, 1, 1}),
  };
}

std::vector<Sample> attention_special_points(Rng& rng) {
  Sample sample = attention_sample(rng, {1, 1, 1, 1, 1, 1}, {.mask = {0}});
  for (std::int64_t k = 0; k < 3; ++k)
    sample.operands[static_cast<std::size_t>(k)].set(0, static_cast<double>(k + 1));
  return {std::move(sample)};
}

std::vector<EvaluatedAttention> evaluated_attention_samples(Rng& rng) {
  std::vector<EvaluatedAttention> result;
  for (Sample sample : {attention_sample(rng, {1, 1, 2, 2, 1, 2}),
                        attention_sample(rng, {2, 1, 2, 2, 1, 1}, {.is_causal = true}),
                        attention_sample(rng, {1, 2, 2, 2, 1, 1}, {.mask = {1, 0}}),
                        attention_sample(rng, {1, 1, 2, 2, 1, 1}, {.bias = {1, 1, 1, 2}})}) {
    std::vector<const Tensor*> operands;
    for (const Tensor& operand : sample.operands) operands.push_back(&operand);
    const std::vector<const TensorType*> types = types_of(operands);
    const AttentionCall call = AttentionCall::of(types, sample.attributes);
    sample.operands.push_back(
        op_attention.evaluate.value({operands, sample.attributes, {call.dtype, call.result()}}));
    result.push_back({std::move(sample), call});
  }
  return result;
}

void EvaluatedAttention::add_directions(Rng& rng, std::int64_t directions, const Shape& shape) {
  Shape full{directions};
  full.insert(full.end(), shape.begin(), shape.end());
  sample.operands.push_back(draw(rng, full));
}

}  // namespace loipe::ops
