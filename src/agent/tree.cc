// SPDX-License-Identifier: Apache-2.0
#include "agent/tree.h"

namespace loipe::agent {

Tree::Tree(Game& game, const Scores& scores, Reference reference, SearchEffort effort, Rng& rng)
    : game_(game),
      reference_(reference),
      effort_(effort),
      rng_(rng),
      depth_(game.depth()),
      root_(std::make_unique<Node>(scores)) {
  root_->observation = observe_here(scores);
}

std::unique_ptr<Observation> Tree::observe_here(const Scores& scores) {
  Outlook outlook{scores.sum(), 0};
  if (reference_ == Reference::completion) {
    const auto [greedy_cost, reverse_cost, rest] = scores.completions(game_);
    outlook.reference_cost = static_cast<double>(rest.cost);
    outlook.reverse_against_greedy =
        value_of_cost(static_cast<double>(reverse_cost), static_cast<double>(greedy_cost));
    if (best_game_.vertices.empty() || game_.total() + rest.cost < best_game_.cost) {
      best_game_ = {game_.total() + rest.cost, game_.moves()};
      best_game_.vertices.insert(best_game_.vertices.end(), rest.vertices.begin(), rest.vertices.end());
    }
  }
  return std::make_unique<Observation>(observe(game_, scores, outlook));
}

void Tree::begin(const Evaluation& evaluation) {
  expand(*root_, evaluation);
  begin();
}

void Tree::begin() {
  simulated_moves_ = 0;
  choice_.emplace(root_->actions.size(), effort_.considered, effort_.simulations, effort_.noise, rng_);
}

const Observation* Tree::descend() {
  path_.clear();
  Node* node = root_.get();
  for (std::size_t action = choice_->next(node->actions, node->cost_to_go);;
       action = inner_action(node->actions, node->cost_to_go)) {
    path_.push_back({node, action});
    ++simulated_moves_;
    if (!node->children[action]) {
      const Observation* leaf = add_child(*node, action);
      game_.undo_to(depth_);
      if (!leaf) finish_simulation(0);
      return leaf;
    }
    Node& child = *node->children[action];
    if (node->actions[action].visits == 0 || child.actions.empty()) {
      game_.undo_to(depth_);
      finish_simulation(child.cost_to_go);
      return nullptr;
    }
    game_.apply(node->vertices[action]);
    node = &child;
  }
}

/// Null if the game is over there.
const Observation* Tree::add_child(Node& node, std::size_t action) {
  auto child = std::make_unique<Node>(node.scores);
  node.costs[action] = child->scores.apply(game_, node.vertices[action]);
  child->observation = observe_here(child->scores);
  node.children[action] = std::move(child);
  const Observation* leaf = node.children[action]->observation.get();
  for (int vertex : leaf->vertices)
    if (vertex > 0) return leaf;
  return nullptr;
}

void Tree::back_up(const Evaluation& evaluation) {
  Node& leaf = *path_.back().node->children[path_.back().action];
  expand(leaf, evaluation);
  finish_simulation(leaf.cost_to_go);
}

void Tree::finish_simulation(double cost_to_go) {
  for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
    cost_to_go += static_cast<double>(step->node->costs[step->action]);
    ActionStatistics& action = step->node->actions[step->action];
    ++action.visits;
    action.cost_sum += cost_to_go;
  }
}

void Tree::expand(Node& node, const Evaluation& evaluation) const {
  const std::vector<int>& vertices = node.observation->vertices;
  for (std::size_t t = 0; t < vertices.size(); ++t) {
    if (vertices[t] == 0) continue;
    node.vertices.push_back(vertices[t]);
    node.tokens.push_back(t);
    node.actions.push_back({evaluation.logits[t], 0, 0});
  }
  node.costs.resize(node.actions.size(), 0);
  node.children.resize(node.actions.size());
  node.cost_to_go = evaluation.cost_to_go;
  node.is_evaluated = true;
}

bool Tree::advance(int vertex) {
  for (std::size_t a = 0; a < root_->vertices.size(); ++a) {
    if (root_->vertices[a] != vertex) continue;
    if (!root_->children[a]) return false;
    root_ = std::move(root_->children[a]);
    depth_ = game_.depth();
    forget_counts(*root_);
    return root_->is_evaluated;
  }
  return false;
}

void Tree::forget_counts(Node& node) {
  for (std::size_t a = 0; a < node.actions.size(); ++a) {
    node.actions[a].visits = 0;
    node.actions[a].cost_sum = 0;
    if (node.children[a]) forget_counts(*node.children[a]);
  }
}

int Tree::best_vertex() const { return root_->vertices[choice_->best(root_->actions, root_->cost_to_go)]; }

std::vector<float> Tree::target_policy() const {
  const std::vector<double> improved = improved_policy(root_->actions, root_->cost_to_go);
  std::vector<float> policy(root_->observation->vertices.size(), 0.0F);
  for (std::size_t a = 0; a < improved.size(); ++a)
    policy[root_->tokens[a]] = static_cast<float>(improved[a]);
  return policy;
}

}  // namespace loipe::agent
