// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/trace.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/observation.h"
#include "base/rng.h"

namespace loipe::agent {

/// What the value head predicts the cost to go relative to.
enum class Reference : std::uint8_t {
  /// The summed costs of all legal vertices. With half of them as the value, one step of search is
  /// look-ahead greedy.
  summed_costs,
  /// What look-ahead greedy or reverse order would pay from here.
  completion,
};

/// Sizes of the transformer; none depends on a graph.
struct Architecture {
  std::int64_t width = 32;  ///< of a token
  std::int64_t heads = 4;   ///< divides the width
  std::int64_t layers = 2;
  std::int64_t hidden = 64;  ///< of the feed-forward part
  Reference reference = Reference::completion;

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// UserError for sizes that make no network.
void check_architecture(const Architecture& architecture);

/// Names and types of all weights, in the order in which the network takes them.
std::vector<Argument> weight_arguments(const Architecture& architecture);

/// Weights before training. Everything that ends in a result is zero but for the prior:
/// the policy is then softmax(-prior * asinh(look-ahead score)), hence the greedy order
/// for prior > 0 and uniformly random play for 0; and the value is half of the summed costs, or
/// what the completion pays.
std::vector<Tensor> initial_weights(const Architecture& architecture, double prior, Rng& rng);

/// Arguments of the network after the weights, for B positions of at most n tokens:
/// tokens [B,n,kTokenFeatures], pairs [B,kPairFeatures,n,n], presence [B,n], legal [B,n].
std::vector<Argument> observation_arguments(std::int64_t batch, std::int64_t tokens);

/// Logits [B,n] (very negative where a token is no legal vertex) and values [B]. A value is
/// the logarithm of (cost to go + 1) / (summed costs + 1).
struct Prediction {
  Traced logits, values;
};

/// A pre-norm transformer over the nodes of a position. Attention is biased by the edges
/// between query and key; nothing else tells nodes apart but their features, so that it is
/// equivariant under renumbering.
Prediction predict(const Architecture& architecture, std::span<const Traced> weights,
                   std::span<const Traced> observation);

/// The loss of a batch: cross entropy of the policies [B,n] plus value_weight times half the
/// squared error of the values [B]; means over the batch.
Traced training_loss(const Prediction& prediction, const Traced& policies, const Traced& values,
                     double value_weight);

}  // namespace loipe::agent
