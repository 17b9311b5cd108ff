// SPDX-License-Identifier: Apache-2.0
#include "ops/samples.h"

#include "base/check.h"

namespace loipe::ops {

Tensor draw_tensor(Rng& rng, DType dtype, Shape shape, Draw draw) {
  Tensor tensor(TensorType{dtype, std::move(shape)});
  const std::int64_t count = tensor.element_count();
  for (std::int64_t i = 0; i < count; ++i) tensor.set(i, draw(rng));
  return tensor;
}

std::span<const std::vector<Shape>> elementwise_shapes(std::size_t operand_count) {
  using List = std::vector<std::vector<Shape>>;
  static const List unary{{{}}, {{1}}, {{5}}, {{2, 3}}, {{2, 1, 3}}, {{0}}, {{3, 0}}};
  static const List binary{{{}, {}},         {{3}, {3}},       {{2, 3}, {}},     {{}, {2, 3}},
                           {{2, 3}, {1, 3}}, {{2, 1}, {2, 3}}, {{2, 1}, {1, 3}}, {{1}, {1}},
                           {{1, 1}, {}},     {{0}, {0}},       {{0, 3}, {1, 3}}, {{2, 1, 2}, {1, 3, 2}}};
  static const List ternary{{{}, {}, {}},         {{3}, {3}, {3}},      {{2, 3}, {}, {}},
                            {{}, {2, 3}, {2, 3}}, {{2, 3}, {2, 3}, {}}, {{2, 1}, {1, 3}, {2, 3}},
                            {{1}, {1}, {}},       {{0, 2}, {0, 2}, {}}, {{2, 1, 2}, {}, {2, 3, 1}}};
  require(operand_count >= 1 && operand_count <= 3, "elementwise samples take one to three operands");
  return operand_count == 1 ? unary : operand_count == 2 ? binary : ternary;
}

std::vector<Sample> elementwise_samples(Rng& rng, std::span<const DType> dtypes, std::span<const Draw> draws,
                                        const Attributes& attributes) {
  std::vector<Sample> samples;
  for (const std::vector<Shape>& shapes : elementwise_shapes(draws.size())) {
    Sample sample{{}, attributes};
    for (std::size_t k = 0; k < shapes.size(); ++k)
      sample.operands.push_back(draw_tensor(rng, dtypes[k], shapes[k], draws[k]));
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<Sample> integral_samples(Rng& rng, DType dtype, std::size_t operand_count) {
  const std::vector<DType> dtypes(operand_count, dtype);
  const std::vector<Draw> draws(operand_count, dtype == DType::boolean ? Draw(boolean) : Draw(small_integer));
  return elementwise_samples(rng, dtypes, draws);
}

Sample scalar_sample(std::initializer_list<double> operands, const Attributes& attributes) {
  Sample sample{{}, attributes};
  for (double operand : operands) sample.operands.push_back(Tensor::scalar(operand));
  return sample;
}

}  // namespace loipe::ops
