// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agent/scores.h"
#include "orders/game.h"

namespace loipe::agent {

inline constexpr std::int64_t kTokenFeatures = 24;
/// Of a pair (query i, key j): an edge j -> i, an edge i -> j, and what either stores.
inline constexpr std::int64_t kPairFeatures = 4;
/// asinh of the look-ahead score, which the prior of the policy is made of.
inline constexpr std::int64_t kScoreFeature = 0;
/// A position of more nodes is seen through a window of so many.
inline constexpr int kMostTokens = 192;

/// A position of the game as the network sees it: one token per node that still has edges
/// (or may be eliminated), features whose meaning does not depend on the size of the graph,
/// and the edges. Up to kMostTokens nodes nothing is left out: types and extents of edges
/// determine what they store, and the edges of scalar graphs are the position.
/// Of a larger position it has the legal vertices of the lowest look-ahead scores, those that
/// reverse order would take next and, in the quarter of the tokens that remains, neighbours
/// of theirs.
struct Observation {
  struct Edge {
    std::int16_t destination, source;  ///< tokens
    float stored;                      ///< see stored_code in observation.cc
  };
  std::vector<int> vertices;    ///< by token: the number of a legal vertex, else 0
  std::vector<float> features;  ///< [tokens][kTokenFeatures]
  std::vector<Edge> edges;
  double reference_cost = 0;  ///< what the value head predicts the cost to go relative to

  std::int64_t tokens() const { return static_cast<std::int64_t>(vertices.size()); }
};

/// What is known of a position as a whole.
struct Outlook {
  double reference_cost = 0;
  /// log(cost of reverse order from here / cost of look-ahead greedy from here); 0 where the
  /// agent is not told.
  double reverse_against_greedy = 0;
};

Observation observe(const Game& game, const Scores& scores, const Outlook& outlook);

/// The smallest n of a short list that has room for so many tokens: the network is compiled
/// for those.
std::int64_t padded_tokens(std::int64_t tokens);

/// Arrays of the network's arguments for positions of at most n tokens each.
class ObservationBatch {
 public:
  ObservationBatch(std::int64_t positions, std::int64_t tokens);
  /// Position k becomes this one; a position that is never set has no node.
  void set(std::int64_t k, const Observation& observation);
  /// tokens, pairs, presence, legal.
  std::vector<std::span<const float>> arguments() const;

 private:
  std::int64_t n_;
  std::vector<float> tokens_, pairs_, presence_, legal_;
};

/// What the network predicts, log((cost to go + 1) / (reference + 1)), from and to costs.
double value_of_cost(double cost_to_go, double reference);
double cost_of_value(double value, double reference);

}  // namespace loipe::agent
