// SPDX-License-Identifier: Apache-2.0
#include "orders/search/subsets.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "orders/search/vertex_cut.h"

namespace loipe::search {

namespace {

std::size_t at(int node) { return static_cast<std::size_t>(node); }

/// Walks through all subsets of a few vertices in ascending order of their bit masks, with
/// the game in the position where the subset is gone.
template <typename Visit>
void for_each_subset(Game& game, const std::vector<int>& vertices, Visit visit) {
  const auto descend = [&](auto&& self, std::size_t rest, std::uint32_t mask) -> void {
    if (rest == 0) return visit(mask);
    self(self, rest - 1, mask);
    game.apply(vertices[rest - 1]);
    self(self, rest - 1, mask | std::uint32_t{1} << (rest - 1));
    game.undo();
  };
  descend(descend, vertices.size(), 0);
}

/// Least cost of reaching each subset, given what each further vertex costs at least. Masks
/// ascend, so a subset is final when it is visited.
template <typename Cost>
std::vector<std::int64_t> subset_costs(Game& game, const std::vector<int>& vertices, Cost cost,
                                       std::vector<std::uint8_t>* last = nullptr) {
  const std::size_t all = std::size_t{1} << vertices.size();
  std::vector<std::int64_t> least(all, Game::kTooMuch);
  least[0] = 0;
  if (last) last->assign(all, 0);
  for_each_subset(game, vertices, [&](std::uint32_t mask) {
    for (std::size_t k = 0; k < vertices.size(); ++k) {
      const std::uint32_t more = mask | std::uint32_t{1} << k;
      if (more == mask) continue;
      const std::int64_t reached = saturated_sum(least[mask], cost(vertices[k], mask));
      if (reached >= least[more]) continue;
      least[more] = reached;
      if (last) (*last)[more] = static_cast<std::uint8_t>(k);
    }
  });
  return least;
}

std::int64_t bound_of_cluster(Game& game, const std::vector<int>& cluster) {
  VertexCut cuts(game);
  std::vector<char> targets(at(game.node_count()), 0);
  for (int vertex : cluster) targets[at(game.node_of(vertex))] = 1;
  const auto cost = [&](int vertex, std::uint32_t) {
    targets[at(game.node_of(vertex))] = 0;
    const std::int64_t before = cuts.of(vertex, VertexCut::Direction::to_inputs, targets);
    const std::int64_t after = cuts.of(vertex, VertexCut::Direction::to_outputs, targets);
    targets[at(game.node_of(vertex))] = 1;
    return before * after;
  };
  return subset_costs(game, cluster, cost).back();
}

}  // namespace

std::vector<std::vector<int>> components(const Game& game) {
  const std::vector<int> vertices = game.legal_vertices();
  std::vector<int> group(at(game.node_count()), -1);
  std::vector<std::vector<int>> result;
  for (int start : vertices) {
    if (group[at(game.node_of(start))] >= 0) continue;
    const int number = static_cast<int>(result.size());
    std::vector<int> found{start};
    group[at(game.node_of(start))] = number;
    for (std::size_t head = 0; head < found.size(); ++head) {
      const auto reach = [&](int node) {
        if (!game.is_legal(game.vertex_of(node)) || group[at(node)] >= 0) return;
        group[at(node)] = number;
        found.push_back(game.vertex_of(node));
      };
      Game::for_each(game.predecessors(game.node_of(found[head])), reach);
      Game::for_each(game.successors(game.node_of(found[head])), reach);
    }
    std::ranges::sort(found);
    result.push_back(std::move(found));
  }
  return result;
}

std::vector<int> optimal_component_order(Game& game, const std::vector<int>& component) {
  require(game.is_scalar() && component.size() <= 24, "subsets of a component that is too large");
  std::vector<std::uint8_t> last;
  subset_costs(game, component, [&](int vertex, std::uint32_t) { return game.cost(vertex); }, &last);
  std::vector<int> order;
  for (auto mask = static_cast<std::uint32_t>(last.size() - 1); mask != 0;) {
    const std::uint8_t k = last[mask];
    order.push_back(component[k]);
    mask &= ~(std::uint32_t{1} << k);
  }
  std::ranges::reverse(order);
  return order;
}

namespace {

/// Clusters whose vertices have many edges among them: each grows from the first vertex
/// that is left by the one with the most neighbours inside.
std::vector<std::vector<int>> connected_clusters(const Game& game, std::vector<int> rest, std::size_t size) {
  std::vector<std::vector<int>> clusters;
  while (!rest.empty()) {
    std::vector<int> cluster;
    std::vector<int> ties(at(game.node_count()), 0);
    while (!rest.empty() && cluster.size() < size) {
      const auto next =
          std::ranges::max_element(rest, {}, [&](int vertex) { return ties[at(game.node_of(vertex))]; });
      const int node = game.node_of(*next);
      cluster.push_back(*next);
      rest.erase(next);
      Game::for_each(game.predecessors(node), [&](int i) { ++ties[at(i)]; });
      Game::for_each(game.successors(node), [&](int k) { ++ties[at(k)]; });
    }
    clusters.push_back(std::move(cluster));
  }
  return clusters;
}

std::vector<std::vector<int>> consecutive_clusters(const std::vector<int>& vertices, std::size_t size) {
  std::vector<std::vector<int>> clusters;
  for (std::size_t k = 0; k < vertices.size(); ++k) {
    if (k % size == 0) clusters.emplace_back();
    clusters.back().push_back(vertices[k]);
  }
  return clusters;
}

}  // namespace

std::int64_t cluster_bound(Game& game, int cluster_size, const Incumbent& clock) {
  const auto bound_of = [&](const std::vector<std::vector<int>>& clusters) {
    std::int64_t bound = 0;
    for (std::vector<int> cluster : clusters) {
      if (clock.is_out_of_time()) cluster.resize(1);
      bound += bound_of_cluster(game, cluster);
    }
    return bound;
  };
  std::int64_t bound = 0;
  for (const std::vector<int>& component : components(game))
    bound += std::max(bound_of(consecutive_clusters(component, at(cluster_size))),
                      bound_of(connected_clusters(game, component, at(cluster_size))));
  return bound;
}

}  // namespace loipe::search
