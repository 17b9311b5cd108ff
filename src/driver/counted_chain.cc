// SPDX-License-Identifier: Apache-2.0
#include "driver/counted_chain.h"

#include <algorithm>
#include <cmath>

namespace loipe {

namespace {

using search::Step;
using Kind = EliminationMove::Kind;

constexpr double kInsertions = 0.15, kRemovals = 0.15;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(Game::Row row, std::uint64_t seed) {
  for (std::uint64_t word : row) seed = mixed(seed, word);
  return seed;
}

}  // namespace

CountedChain::CountedChain(const CountedCost& cost, const Game* game, std::vector<Step> steps,
                           std::int64_t start_cost, const CountedChainOptions& options)
    : cost_(cost), steps_(std::move(steps)), current_(start_cost), options_(options), rng_(options.seed) {
  if (game) game_ = *game;
}

EliminationOrder CountedChain::order_of(const Game* game, const std::vector<Step>& steps) {
  EliminationOrder order{"search", {}};
  if (std::ranges::all_of(steps, [](const Step& step) { return step.kind == Kind::vertex; })) {
    // Without a game, steps hold vertices by their numbers.
    for (const Step& step : steps)
      order.vertices.push_back(game ? game->vertex_of(step.source) : step.source);
  } else {
    order.moves = search::moves_of(*game, steps);
  }
  return order;
}

void CountedChain::run(search::MovesIncumbent& incumbent) {
  std::int64_t best = current_;
  incumbent.offer(steps_, best, options_.rank);
  if (game_) known_[signature(steps_)] = current_;
  const double ratio = std::log(options_.last_temperature / options_.first_temperature);
  while (work_ < options_.work && steps_.size() > 1 && !incumbent.is_out_of_time()) {
    const double share = static_cast<double>(work_) / static_cast<double>(options_.work);
    const double temperature = options_.first_temperature * std::exp(ratio * share);
    std::vector<Step> steps = changed();
    const std::int64_t cost = cost_of(steps);
    incumbent.report();
    const double slack = -temperature * std::log(1 - rng_.uniform());
    if (static_cast<double>(cost - current_) > slack) continue;
    steps_ = std::move(steps);
    current_ = cost;
    if (current_ >= best) continue;
    best = current_;
    incumbent.offer(steps_, best, options_.rank);
  }
}

std::vector<Step> CountedChain::changed() {
  std::vector<Step> steps = steps_;
  const auto size = static_cast<std::int64_t>(steps.size());
  const auto from = static_cast<std::size_t>(rng_.below(size));
  const double kind = rng_.uniform();
  if (options_.with_edges && kind < kInsertions && insert_edge(steps, from)) return steps;
  if (kind >= kInsertions && kind < kInsertions + kRemovals && steps[from].kind != Kind::vertex) {
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(from));
    return steps;
  }
  // Distances are drawn with equal weight on every scale.
  const double scale = rng_.uniform();
  const auto length = static_cast<std::int64_t>(std::pow(static_cast<double>(size), scale));
  const std::int64_t drawn = static_cast<std::int64_t>(from) + (rng_.chance(0.5) ? length : -length);
  const auto to = static_cast<std::size_t>(std::clamp<std::int64_t>(drawn, 0, size - 1));
  shuffle(steps, from, to);
  return steps;
}

/// Moves one step, or swaps two, or reverses what is between them.
void CountedChain::shuffle(std::vector<Step>& steps, std::size_t from, std::size_t to) {
  const auto low = steps.begin() + static_cast<std::ptrdiff_t>(std::min(from, to));
  const auto high = steps.begin() + static_cast<std::ptrdiff_t>(std::max(from, to));
  const double kind = rng_.uniform();
  if (kind < 0.2) std::iter_swap(low, high);
  else if (kind < 0.3) std::reverse(low, high + 1);
  else if (from < to) std::rotate(low, low + 1, high + 1);
  else std::rotate(low, high, high + 1);
}

/// An edge of a vertex that is eliminated a little later.
bool CountedChain::insert_edge(std::vector<Step>& steps, std::size_t at) {
  const std::size_t later = at + static_cast<std::size_t>(rng_.below(4));
  if (!game_ || later >= steps.size() || steps[later].kind != Kind::vertex) return false;
  for (std::size_t k = 0; k < at; ++k) play(*game_, steps[k]);
  const std::optional<Step> edge = search::random_edge(*game_, steps[later].source, rng_);
  game_->undo_to(0);
  if (edge) steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at), *edge);
  return edge.has_value();
}

/// The set of eliminations, each with the edges that it meets. Sums over sets do not depend on
/// the order of eliminations that do not meet.
std::uint64_t CountedChain::signature(const std::vector<Step>& steps) {
  std::uint64_t sum = 0;
  for (const Step& step : steps) {
    std::uint64_t key =
        mixed(static_cast<std::uint64_t>(step.kind) + 1, static_cast<std::uint64_t>(step.source));
    if (step.kind != Kind::vertex) {
      const bool is_idle = game_->edge(step.source, step.destination).type == published::EdgeType::none;
      if (is_idle) continue;
      key = mixed(key, static_cast<std::uint64_t>(step.destination));
    }
    const int j = step.kind == Kind::front ? step.destination : step.source;
    key = hash_of(game_->predecessors(j), key);
    sum += hash_of(game_->successors(j), key);
    play(*game_, step);
  }
  game_->undo_to(0);
  return sum;
}

std::int64_t CountedChain::cost_of(const std::vector<Step>& steps) {
  std::uint64_t key = 0;
  if (game_) {
    ++work_;  // so that a chain that knows everything ends
    key = signature(steps);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  const Counted counted = cost_.of(order_of(game_ ? &*game_ : nullptr, steps));
  work_ += counted.work;
  if (game_) known_[key] = counted.cost;
  return counted.cost;
}

}  // namespace loipe
