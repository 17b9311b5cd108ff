// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/derivative.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "agent/network.h"
#include "backends/backend.h"

namespace loipe::agent {

/// What the network says of a position.
struct Evaluation {
  std::vector<float> logits;  ///< by token
  double cost_to_go = 0;
};

/// An example to learn from.
struct Example {
  Observation observation;
  std::vector<float> policy;  ///< by token; sums to 1
  double cost_to_go = 0;      ///< what was paid until the end of the game
};

/// The network of an architecture, compiled by Loipe for as many positions and tokens as are
/// met. Any number of threads may use it at the same time; every run has one thread.
class Network {
 public:
  explicit Network(const Architecture& architecture) : architecture_(architecture) {
    check_architecture(architecture);
  }

  const Architecture& architecture() const { return architecture_; }

  /// Positions of any sizes, evaluated in groups of equal padded size, largest group first.
  std::vector<Evaluation> evaluate(std::span<const Tensor> weights,
                                   std::span<const Observation* const> observations) const;

  /// Adds the derivatives of the loss of these examples, which have one padded size, to
  /// `gradients` (of the weights' shapes) and returns the loss. Reverse order, of course.
  double add_gradient(std::span<const Tensor> weights, std::span<const Example* const> examples,
                      std::vector<Tensor>& gradients) const;

  static constexpr double kValueWeight = 1;

 private:
  void evaluate_group(std::span<const Tensor> weights, std::span<const Observation* const> group,
                      std::int64_t run, std::int64_t n, std::span<Evaluation> results) const;

  using Key = std::pair<std::int64_t, std::int64_t>;  ///< positions, tokens
  const Executable& forward_program(Key key) const;
  const Derivative& gradient_program(Key key) const;

  Architecture architecture_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::unique_ptr<Executable>> forward_;
  mutable std::map<Key, std::unique_ptr<Derivative>> gradients_;
};

}  // namespace loipe::agent
