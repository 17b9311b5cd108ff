// SPDX-License-Identifier: Apache-2.0
#include "orders/search/layers.h"

#include <algorithm>
#include <unordered_map>

#include "orders/search/greedy.h"

namespace loipe::search {

namespace {

struct Entry {
  int parent;  ///< in the layer before
  int vertex;
  std::int64_t cost;
  std::int64_t bound;  ///< least cost of all that is left
  double ahead;        ///< summed costs of all that is left, now
  std::uint64_t hash;

  double score() const { return static_cast<double>(cost) + 0.5 * ahead; }
};

using Layer = std::vector<Entry>;

class Layers {
 public:
  Layers(Game& game, std::int64_t limit, const LayerOptions& options, const Incumbent& clock)
      : game_(game), limit_(limit), options_(options), clock_(clock), base_(game.depth()) {}

  LayerResult run() {
    const std::vector<int> vertices = game_.legal_vertices();
    layers_.push_back({root(vertices)});
    for (std::size_t depth = 0; depth < vertices.size(); ++depth) {
      if (!expand_all() || layers_.back().empty()) break;
    }
    LayerResult result;
    result.is_exhaustive = is_exhaustive_;
    if (layers_.size() == vertices.size() + 1 && !layers_.back().empty()) {
      const auto best = std::ranges::min_element(layers_.back(), {}, &Entry::cost);
      result.cost = best->cost;
      result.order = path(layers_.size() - 1, static_cast<int>(best - layers_.back().begin()));
    }
    game_.undo_to(base_);
    return result;
  }

 private:
  std::int64_t least(int vertex) const {
    return options_.least_costs.empty() ? 0 : options_.least_costs[static_cast<std::size_t>(vertex - 1)];
  }

  Entry root(const std::vector<int>& vertices) const {
    Entry entry{-1, 0, 0, 0, 0, game_.hash()};
    for (int vertex : vertices) {
      entry.bound += least(vertex);
      entry.ahead += static_cast<double>(game_.cost(vertex));
    }
    return entry;
  }

  std::vector<int> path(std::size_t depth, int index) const {
    std::vector<int> vertices(depth);
    for (; depth > 0; --depth) {
      const Entry& entry = layers_[depth][static_cast<std::size_t>(index)];
      vertices[depth - 1] = entry.vertex;
      index = entry.parent;
    }
    return vertices;
  }

  /// Neighbours in a layer share most of their past.
  void go_to(const std::vector<int>& wanted) {
    std::size_t common = 0;
    while (common < wanted.size() && common < here_.size() && wanted[common] == here_[common]) ++common;
    game_.undo_to(base_ + common);
    for (std::size_t k = common; k < wanted.size(); ++k) game_.apply(wanted[k]);
    here_ = wanted;
  }

  /// False when time is out.
  bool expand_all() {
    const std::size_t depth = layers_.size() - 1;
    Layer next;
    std::unordered_map<std::uint64_t, std::size_t> known;
    for (std::size_t index = 0; index < layers_[depth].size(); ++index) {
      if (clock_.is_out_of_time()) return is_exhaustive_ = false;
      go_to(path(depth, static_cast<int>(index)));
      expand(static_cast<int>(index), layers_[depth][index], next, known);
    }
    if (next.size() > options_.width) {
      is_exhaustive_ = false;
      const auto is_better = [](const Entry& a, const Entry& b) {
        return std::tuple(a.score(), a.hash) < std::tuple(b.score(), b.hash);
      };
      std::ranges::nth_element(next, next.begin() + static_cast<std::ptrdiff_t>(options_.width), is_better);
      next.resize(options_.width);
    }
    std::ranges::sort(next, {}, [](const Entry& entry) { return std::pair(entry.parent, entry.vertex); });
    layers_.push_back(std::move(next));
    return true;
  }

  void expand(int index, const Entry& parent, Layer& next,
              std::unordered_map<std::uint64_t, std::size_t>& known) {
    LookAhead ahead(game_);
    for (int vertex : game_.legal_vertices()) {
      const std::int64_t cost = saturated_sum(parent.cost, ahead.cost(vertex));
      const std::int64_t bound = parent.bound - least(vertex);
      if (saturated_sum(cost, bound) >= limit_) continue;
      const double left = parent.ahead - static_cast<double>(ahead.cost(vertex)) + ahead.change(vertex);
      game_.apply(vertex);
      const Entry entry{index, vertex, cost, bound, left, game_.hash()};
      game_.undo();
      const auto [place, is_new] = known.emplace(entry.hash, next.size());
      if (is_new) next.push_back(entry);
      else if (cost < next[place->second].cost) next[place->second] = entry;
    }
  }

  Game& game_;
  std::int64_t limit_;
  const LayerOptions& options_;
  const Incumbent& clock_;
  std::size_t base_;
  std::vector<Layer> layers_;
  std::vector<int> here_;
  bool is_exhaustive_ = true;
};

}  // namespace

LayerResult search_layers(Game& game, std::int64_t limit, const LayerOptions& options,
                          const Incumbent& clock) {
  return Layers(game, limit, options, clock).run();
}

}  // namespace loipe::search
