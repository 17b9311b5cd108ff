// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <span>
#include <vector>

namespace loipe::agent {

struct AdamOptions {
  double learning_rate = 2e-3;
  double decay_steps = 2000;  ///< the rate falls as 1 / sqrt(1 + steps / decay_steps)
  double clip = 1;            ///< largest norm of the whole gradient
  double weight_decay = 1e-4;
};

/// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019) and a
/// clipped gradient.
struct Adam {
  std::vector<Tensor> first, second;  ///< moments, of the weights' shapes
  std::int64_t steps = 0;

  explicit Adam(std::span<const Tensor> weights);
  void step(std::vector<Tensor>& weights, std::span<const Tensor> gradients, const AdamOptions& options);
};

}  // namespace loipe::agent
