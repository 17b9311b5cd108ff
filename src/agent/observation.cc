// SPDX-License-Identifier: Apache-2.0
#include "agent/observation.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace loipe::agent {

namespace {

using published::EdgeType;
using published::Tie;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

float log1p_of(double count) { return static_cast<float>(std::log1p(count)); }

/// log(1 + numbers that the edge stores) / 10: positive for a dense edge, and negative with
/// an offset where indices are tied (a tie with values counts them once, one without not at
/// all) or where nothing is stored. With the extents of both ends it tells most types apart.
float stored_code(const published::Edge& edge) {
  if (edge.type == EdgeType::copy) return -0.05F;
  if (edge.type == EdgeType::reshape) return -0.1F;
  const published::Structure& structure = published::structure_of(edge.type);
  double stored = 1;
  bool has_tie = false;
  for (std::size_t a = 0; a < 2; ++a) {
    bool destination_counts = true, source_counts = true;
    for (std::size_t b = 0; b < 2; ++b) {
      destination_counts = destination_counts && structure.ties[a][b] != Tie::delta;
      source_counts = source_counts && structure.ties[b][a] == Tie::none;
      has_tie = has_tie || structure.ties[a][b] != Tie::none;
    }
    if (destination_counts) stored *= edge.extents[a];
    if (source_counts) stored *= edge.extents[2 + a];
  }
  const float code = log1p_of(stored) / 10;
  return has_tie ? -0.2F - code : code;
}

/// Shortest numbers of edges from a set of nodes, along `next`.
template <typename Next>
std::vector<int> distances(const Game& game, const std::vector<int>& from, Next next) {
  std::vector<int> distance(at(game.node_count()), -1);
  std::queue<int> queue;
  for (int node : from) {
    distance[at(node)] = 0;
    queue.push(node);
  }
  for (; !queue.empty(); queue.pop()) {
    const int node = queue.front();
    Game::for_each(next(node), [&](int other) {
      if (distance[at(other)] >= 0) return;
      distance[at(other)] = distance[at(node)] + 1;
      queue.push(other);
    });
  }
  return distance;
}

/// What features of all tokens are relative to.
struct Frame {
  std::vector<int> inputs, outputs, legal;  ///< nodes with edges; legal vertices as nodes
  std::vector<int> from_inputs, to_outputs;
  double mean_score = 0;

  Frame(const Game& game, const Scores& scores) {
    for (int node = 0; node < game.node_count(); ++node) {
      const bool is_used = Game::count(game.predecessors(node)) + Game::count(game.successors(node)) > 0;
      if (node < game.input_count()) {
        if (is_used) inputs.push_back(node);
      } else if (game.is_output(node)) {
        if (is_used) outputs.push_back(node);
      } else if (game.is_legal(game.vertex_of(node))) {
        legal.push_back(node);
        mean_score += std::asinh(scores.look_ahead(node));
      }
    }
    mean_score /= std::max<double>(1, static_cast<double>(legal.size()));
    from_inputs = distances(game, inputs, [&](int node) { return game.successors(node); });
    to_outputs = distances(game, outputs, [&](int node) { return game.predecessors(node); });
  }
};

/// All nodes with edges, or the window of a large position; ascending.
std::vector<int> nodes_in_view(const Game& game, const Scores& scores, const Frame& frame) {
  std::vector<int> nodes = frame.legal;
  if (frame.inputs.size() + frame.legal.size() + frame.outputs.size() <= at(kMostTokens)) {
    nodes.insert(nodes.end(), frame.inputs.begin(), frame.inputs.end());
    nodes.insert(nodes.end(), frame.outputs.begin(), frame.outputs.end());
  } else {
    const std::size_t next_in_reverse = std::min(nodes.size(), at(kMostTokens / 8));
    std::rotate(nodes.begin(), nodes.end() - static_cast<std::ptrdiff_t>(next_in_reverse), nodes.end());
    const std::size_t most = std::min(nodes.size(), at(kMostTokens * 3 / 4));
    // The first of them are there whatever their score.
    const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(next_in_reverse);
    std::ranges::partial_sort(begin, nodes.begin() + static_cast<std::ptrdiff_t>(most), nodes.end(), {},
                              [&](int node) { return std::pair(scores.look_ahead(node), node); });
    nodes.resize(most);
    std::vector<bool> is_seen(at(game.node_count()), false);
    for (int node : nodes) is_seen[at(node)] = true;
    const auto add = [&](int node) {
      if (is_seen[at(node)] || nodes.size() >= at(kMostTokens)) return;
      is_seen[at(node)] = true;
      nodes.push_back(node);
    };
    for (std::size_t k = 0; k < most; ++k) {
      Game::for_each(game.predecessors(nodes[k]), add);
      Game::for_each(game.successors(nodes[k]), add);
    }
  }
  std::ranges::sort(nodes);
  return nodes;
}

/// Extents of a node, as its edges have them.
std::pair<double, double> extents_of(const Game& game, int node) {
  std::pair<double, double> extents{1, 1};
  if (game.is_scalar()) return extents;
  bool is_known = false;
  Game::for_each(game.predecessors(node), [&](int other) {
    if (is_known) return;
    const published::Edge edge = game.edge(other, node);
    extents = {edge.extents[0], edge.extents[1]};
    is_known = true;
  });
  Game::for_each(game.successors(node), [&](int other) {
    if (is_known) return;
    const published::Edge edge = game.edge(node, other);
    extents = {edge.extents[2], edge.extents[3]};
    is_known = true;
  });
  return extents;
}

void write_features(const Game& game, const Scores& scores, const Frame& frame, const Outlook& outlook,
                    int node, float* x) {
  const bool is_input = node < game.input_count(), is_output = game.is_output(node);
  const auto scaled = [](double number) { return static_cast<float>(std::asinh(number) / 5); };
  if (!is_input && !is_output) {
    x[kScoreFeature] = static_cast<float>(std::asinh(scores.look_ahead(node)));
    x[1] = scaled(static_cast<double>(scores.cost(node)));
    x[2] = scaled(scores.change(node));
    x[3] = x[kScoreFeature] - static_cast<float>(frame.mean_score);
    x[4] = 1;
    // How many legal vertices reverse and forward order would take before it.
    const auto place = std::ranges::lower_bound(frame.legal, node) - frame.legal.begin();
    x[20] = log1p_of(static_cast<double>(std::ssize(frame.legal) - 1 - place));
    x[21] = log1p_of(static_cast<double>(place));
  }
  x[5] = is_input ? 1 : 0;
  x[6] = is_output ? 1 : 0;
  x[7] = log1p_of(Game::count(game.predecessors(node)));
  x[8] = log1p_of(Game::count(game.successors(node)));
  const auto [first, second] = extents_of(game, node);
  x[9] = log1p_of(first - 1) / 3;
  x[10] = log1p_of(second - 1) / 3;
  x[11] = static_cast<float>(node) / static_cast<float>(game.node_count());
  const int depth = frame.from_inputs[at(node)], height = frame.to_outputs[at(node)];
  x[12] = log1p_of(std::max(0, depth));
  x[13] = log1p_of(std::max(0, height));
  x[14] = depth < 0 || height < 0 ? 1 : 0;
  x[15] = log1p_of(static_cast<double>(frame.inputs.size())) / 3;
  x[16] = log1p_of(static_cast<double>(frame.outputs.size())) / 3;
  x[17] = log1p_of(static_cast<double>(frame.legal.size())) / 3;
  x[18] = scaled(scores.sum());
  x[19] = depth >= 0 && height >= 0 ? static_cast<float>(depth) / static_cast<float>(depth + height + 1) : 0;
  x[22] = static_cast<float>(std::clamp(outlook.reverse_against_greedy, -3.0, 3.0));
  x[23] = static_cast<float>(std::clamp(value_of_cost(outlook.reference_cost, scores.sum()), -3.0, 3.0));
}

}  // namespace

Observation observe(const Game& game, const Scores& scores, const Outlook& outlook) {
  const Frame frame(game, scores);
  const std::vector<int> nodes = nodes_in_view(game, scores, frame);
  Observation result;
  result.reference_cost = outlook.reference_cost;
  result.vertices.resize(nodes.size(), 0);
  result.features.resize(nodes.size() * at(kTokenFeatures), 0.0F);
  std::vector<int> token_of(at(game.node_count()), -1);
  for (std::size_t t = 0; t < nodes.size(); ++t) token_of[at(nodes[t])] = static_cast<int>(t);
  for (std::size_t t = 0; t < nodes.size(); ++t) {
    const int node = nodes[t];
    if (node >= game.input_count() && game.is_legal(game.vertex_of(node)))
      result.vertices[t] = game.vertex_of(node);
    write_features(game, scores, frame, outlook, node, result.features.data() + t * at(kTokenFeatures));
    Game::for_each(game.predecessors(node), [&](int other) {
      const int source = token_of[at(other)];
      if (source < 0) return;
      const float stored = game.is_scalar() ? 0.0F : stored_code(game.edge(other, node));
      result.edges.push_back({static_cast<std::int16_t>(t), static_cast<std::int16_t>(source), stored});
    });
  }
  return result;
}

std::int64_t padded_tokens(std::int64_t tokens) {
  for (std::int64_t n : {8, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160})
    if (tokens <= n) return n;
  return kMostTokens;
}

ObservationBatch::ObservationBatch(std::int64_t positions, std::int64_t tokens)
    : n_(tokens),
      tokens_(at(positions * tokens * kTokenFeatures), 0.0F),
      pairs_(at(positions * kPairFeatures * tokens * tokens), 0.0F),
      presence_(at(positions * tokens), 0.0F),
      legal_(at(positions * tokens), 0.0F) {}

void ObservationBatch::set(std::int64_t k, const Observation& observation) {
  const std::int64_t square = n_ * n_;
  float* tokens = tokens_.data() + k * n_ * kTokenFeatures;
  float* pairs = pairs_.data() + k * kPairFeatures * square;
  std::fill_n(tokens, n_ * kTokenFeatures, 0.0F);
  std::fill_n(pairs, kPairFeatures * square, 0.0F);
  std::ranges::copy(observation.features, tokens);
  for (std::int64_t t = 0; t < n_; ++t) {
    const bool is_there = t < observation.tokens();
    presence_[at(k * n_ + t)] = is_there ? 1 : 0;
    legal_[at(k * n_ + t)] = is_there && observation.vertices[at(t)] > 0 ? 1 : 0;
  }
  for (const Observation::Edge& edge : observation.edges) {
    const std::int64_t back = edge.destination * n_ + edge.source,
                       ahead = edge.source * n_ + edge.destination;
    pairs[back] = 1;
    pairs[square + ahead] = 1;
    pairs[2 * square + back] = edge.stored;
    pairs[3 * square + ahead] = edge.stored;
  }
}

std::vector<std::span<const float>> ObservationBatch::arguments() const {
  return {tokens_, pairs_, presence_, legal_};
}

double value_of_cost(double cost_to_go, double reference) {
  return std::log((cost_to_go + 1) / (reference + 1));
}

double cost_of_value(double value, double reference) {
  return std::max(0.0, std::exp(std::clamp(value, -20.0, 20.0)) * (reference + 1) - 1);
}

}  // namespace loipe::agent
