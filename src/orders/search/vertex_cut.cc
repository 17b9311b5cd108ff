// SPDX-License-Identifier: Apache-2.0
#include "orders/search/vertex_cut.h"

#include <algorithm>

namespace loipe::search {

namespace {

constexpr int kNone = -1;
std::size_t at(int node) { return static_cast<std::size_t>(node); }

}  // namespace

VertexCut::VertexCut(const Game& game)
    : game_(game),
      no_targets_(at(game.node_count()), 0),
      next_(no_targets_.size(), kNone),
      previous_(no_targets_.size(), kNone),
      parents_(2 * no_targets_.size()),
      seen_(2 * no_targets_.size(), 0) {}

bool VertexCut::is_target(int node, Direction direction, const std::vector<char>& more_targets) const {
  if (more_targets[at(node)]) return true;
  return direction == Direction::to_outputs ? game_.is_output(node) : node < game_.input_count();
}

int VertexCut::of(int vertex, Direction direction, const std::vector<char>& more_targets) {
  std::ranges::fill(next_, kNone);
  std::ranges::fill(previous_, kNone);
  int paths = 0;
  while (augment(game_.node_of(vertex), direction, more_targets)) ++paths;
  return paths;
}

void VertexCut::visit(int node, bool leaves, Place from) {
  const std::size_t where = 2 * at(node) + leaves;
  if (seen_[where] == round_) return;
  seen_[where] = round_;
  parents_[where] = from;
  queue_.push_back({node, leaves});
}

/// Breadth first through the residual network, in which a path that is there already may
/// only be walked backwards.
bool VertexCut::augment(int source, Direction direction, const std::vector<char>& more_targets) {
  ++round_;
  queue_.clear();
  seen_[2 * at(source)] = round_;
  visit(source, true, {kNone, false});
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const Place here = queue_[head];
    const bool is_on_path = previous_[at(here.node)] != kNone;
    if (here.leaves) {
      const Game::Row row =
          direction == Direction::to_outputs ? game_.successors(here.node) : game_.predecessors(here.node);
      Game::for_each(row, [&](int other) {
        const bool carries_path = previous_[at(other)] == here.node;
        if (!carries_path && may_follow(here.node, other, source, direction)) visit(other, false, here);
      });
      if (is_on_path) visit(here.node, false, here);
    } else if (is_on_path) {
      if (previous_[at(here.node)] != source) visit(previous_[at(here.node)], true, here);
    } else if (is_target(here.node, direction, more_targets)) {
      follow_back(here, source);
      return true;
    } else {
      visit(here.node, true, here);
    }
  }
  return false;
}

void VertexCut::follow_back(Place last, int source) {
  std::vector<Place>& trail = queue_;  // the queue is done with
  trail.clear();
  for (Place here = last; here.node != kNone; here = parents_[2 * at(here.node) + here.leaves])
    trail.push_back(here);
  for (std::size_t k = trail.size() - 1; k > 0; --k) {  // what is undone, first
    const Place from = trail[k], to = trail[k - 1];
    if (from.leaves && from.node == to.node) previous_[at(to.node)] = next_[at(to.node)] = kNone;
    if (!from.leaves && from.node != to.node && next_[at(to.node)] == from.node) next_[at(to.node)] = kNone;
  }
  for (std::size_t k = trail.size() - 1; k > 0; --k) {
    const Place from = trail[k], to = trail[k - 1];
    if (!from.leaves || from.node == to.node) continue;
    if (from.node != source) next_[at(from.node)] = to.node;
    previous_[at(to.node)] = from.node;
  }
}

std::int64_t least_cost(VertexCut& cuts, int vertex) {
  return std::int64_t{cuts.of(vertex, VertexCut::Direction::to_inputs)} *
         cuts.of(vertex, VertexCut::Direction::to_outputs);
}

}  // namespace loipe::search
