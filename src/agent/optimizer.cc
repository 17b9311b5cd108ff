// SPDX-License-Identifier: Apache-2.0
#include "agent/optimizer.h"

#include <algorithm>
#include <cmath>

namespace loipe::agent {

Adam::Adam(std::span<const Tensor> weights) {
  for (const Tensor& weight : weights) {
    first.emplace_back(weight.type());
    second.emplace_back(weight.type());
  }
}

void Adam::step(std::vector<Tensor>& weights, std::span<const Tensor> gradients, const AdamOptions& options) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kEpsilon = 1e-8;
  double square = 0;
  for (const Tensor& gradient : gradients)
    for (float g : gradient.elements<float>()) square += static_cast<double>(g) * g;
  if (!std::isfinite(square)) return;  // a step by NaN would lose the network
  const double scale = std::min(1.0, options.clip / (std::sqrt(square) + 1e-12));
  const auto t = static_cast<double>(++steps);
  const double rate = options.learning_rate / std::sqrt(1 + t / options.decay_steps);
  const double unbias1 = 1 - std::pow(kBeta1, t), unbias2 = 1 - std::pow(kBeta2, t);
  for (std::size_t w = 0; w < weights.size(); ++w) {
    const std::span<float> x = weights[w].elements<float>();
    const std::span<const float> gradient = gradients[w].elements<float>();
    const std::span<float> m = first[w].elements<float>(), v = second[w].elements<float>();
    const double decay = weights[w].shape().size() == 2 ? options.weight_decay : 0;  // matrices only
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double g = scale * gradient[k];
      m[k] = static_cast<float>(kBeta1 * m[k] + (1 - kBeta1) * g);
      v[k] = static_cast<float>(kBeta2 * v[k] + (1 - kBeta2) * g * g);
      const double update = m[k] / unbias1 / (std::sqrt(v[k] / unbias2) + kEpsilon);
      x[k] = static_cast<float>(x[k] - rate * (update + decay * x[k]));
    }
  }
}

}  // namespace loipe::agent
