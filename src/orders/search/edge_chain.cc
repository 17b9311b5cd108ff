// SPDX-License-Identifier: Apache-2.0
#include "orders/search/edge_chain.h"

#include <algorithm>
#include <cmath>

namespace loipe::search {

namespace {

using Kind = EliminationMove::Kind;

constexpr int kTriesPerStep = 4;
constexpr int kStepsPerCheck = 256;

}  // namespace

EdgeChain::EdgeChain(const Game& game, std::vector<Step> steps, const AnnealOptions& options)
    : game_(game),
      options_(options),
      rng_(options.seed),
      base_(game.depth()),
      prefix_total_(game.total()),
      base_hash_(game.hash()),
      most_steps_(3 * steps.size()),
      steps_(std::move(steps)) {
  replay();
}

void EdgeChain::replay() {
  total_ = 0;
  costs_.clear();
  hashes_.clear();
  for (const Step& step : steps_) {
    costs_.push_back(play(game_, step));
    hashes_.push_back(game_.hash());
    total_ = saturated_sum(total_, costs_.back());
  }
  game_.undo_to(base_);
  pointer_ = 0;
  goes_up_ = true;
}

void EdgeChain::run(MovesIncumbent& incumbent) {
  std::int64_t best = Game::kTooMuch;
  const std::uint64_t first_work = game_.work();
  const double ratio = std::log(options_.last_temperature / options_.first_temperature);
  for (;;) {
    const std::uint64_t done = game_.work() - first_work;
    if (done >= options_.work || steps_.size() < 2 || incumbent.is_out_of_time()) break;
    incumbent.report();
    temperature_ = options_.first_temperature *
                   std::exp(ratio * static_cast<double>(done) / static_cast<double>(options_.work));
    for (int step = 0; step < kStepsPerCheck; ++step) {
      for (int attempt = 0; attempt < kTriesPerStep; ++attempt) {
        propose();
        if (prefix_total_ + total_ >= best) continue;
        best = prefix_total_ + total_;
        incumbent.offer(steps_, best, options_.rank);
      }
      walk();
    }
  }
}

void EdgeChain::walk() {
  if (goes_up_ && pointer_ + 2 >= steps_.size()) goes_up_ = false;
  if (!goes_up_ && pointer_ == 0) goes_up_ = steps_.size() > 2;
  if (goes_up_) play(game_, steps_[pointer_++]);
  else if (pointer_ > 0) {
    game_.undo();
    --pointer_;
  }
}

/// Where the game stands at the pointer, so that what is inserted exists there.
void EdgeChain::propose() {
  if (steps_.size() - pointer_ < 2) return;
  const double kind = rng_.uniform();
  if (kind < 0.2) {
    if (steps_.size() < most_steps_ && insert_edge()) attempt(0);
    return;
  }
  if (kind < 0.5) {
    const std::size_t length = draw_length();
    const std::size_t last = pointer_ + length - 1;
    for (const std::size_t position : {pointer_, last})
      if (steps_[position].kind != Kind::vertex) {
        leave_out(position);
        return attempt(position - pointer_ + 1);
      }
  }
  const std::size_t length = draw_length();
  shuffle(length);
  attempt(length);
}

/// Window lengths are drawn with equal weight on every scale, a quarter of them uniformly.
std::size_t EdgeChain::draw_length() {
  const std::size_t most = steps_.size() - pointer_;
  const double scale = rng_.uniform();
  const double drawn = rng_.chance(0.25) ? 2 + scale * static_cast<double>(most - 1)
                                         : 2 * std::pow(static_cast<double>(most) / 2, scale);
  return std::clamp<std::size_t>(static_cast<std::size_t>(drawn), std::min<std::size_t>(2, most), most);
}

/// An edge of the vertex that some later step eliminates, most often a near one.
bool EdgeChain::insert_edge() {
  const Step& later = steps_[pointer_ + draw_length() - 1];
  if (later.kind != Kind::vertex) return false;
  const std::optional<Step> edge = random_edge(game_, later.source, rng_);
  if (edge) window_ = {*edge};
  return edge.has_value();
}

void EdgeChain::leave_out(std::size_t position) {
  window_.assign(steps_.begin() + static_cast<std::ptrdiff_t>(pointer_),
                 steps_.begin() + static_cast<std::ptrdiff_t>(position));
}

void EdgeChain::shuffle(std::size_t length) {
  const auto first = steps_.begin() + static_cast<std::ptrdiff_t>(pointer_);
  window_.assign(first, first + static_cast<std::ptrdiff_t>(length));
  switch (rng_.below(4)) {
    case 0: std::ranges::rotate(window_, window_.begin() + 1); break;
    case 1: std::ranges::rotate(window_, window_.end() - 1); break;
    case 2: std::swap(window_.front(), window_.back()); break;
    default: std::ranges::reverse(window_); break;
  }
}

void EdgeChain::attempt(std::size_t length) {
  const double slack = -temperature_ * std::log(1 - rng_.uniform());
  const bool is_accepted = plays(length, slack);
  game_.undo_to(base_ + pointer_);
  if (is_accepted) accept(length);
}

/// Plays the window in place of `length` old steps, then old steps until the position is an
/// old one. False as soon as that is dearer than the old sequence by more than the slack.
bool EdgeChain::plays(std::size_t length, double slack) {
  new_costs_.clear();
  new_hashes_.clear();
  std::int64_t gained = 0;  // new minus old, of the steps that have been played
  std::int64_t rest = 0;    // of the old sequence: what could still be saved
  for (std::size_t k = pointer_; k < steps_.size(); ++k) rest += costs_[k];
  const auto note = [&](std::int64_t cost) {
    new_costs_.push_back(cost);
    new_hashes_.push_back(game_.hash());
    gained += cost;
    return static_cast<double>(gained - rest) <= slack;
  };
  for (const Step& step : window_)
    if (!note(play(game_, step))) return false;
  for (std::size_t k = pointer_; k < pointer_ + length; ++k) {
    gained -= costs_[k];
    rest -= costs_[k];
  }
  std::size_t k = pointer_ + length;
  for (; k < steps_.size() && game_.hash() != hash_before(k); ++k) {
    const std::int64_t cost = play(game_, steps_[k]);
    gained -= costs_[k];
    rest -= costs_[k];
    if (!note(cost)) return false;
  }
  replayed_ = k - pointer_ - length;
  return static_cast<double>(gained) <= slack;
}

void EdgeChain::accept(std::size_t length) {
  const auto from = static_cast<std::ptrdiff_t>(pointer_);
  const auto to = from + static_cast<std::ptrdiff_t>(length + replayed_);
  window_.insert(window_.end(), steps_.begin() + from + static_cast<std::ptrdiff_t>(length),
                 steps_.begin() + to);
  for (std::ptrdiff_t k = from; k < to; ++k) total_ -= costs_[static_cast<std::size_t>(k)];
  for (std::int64_t cost : new_costs_) total_ = saturated_sum(total_, cost);
  const auto replace = [&](auto& list, const auto& by) {
    if (static_cast<std::ptrdiff_t>(by.size()) == to - from)
      return void(std::ranges::copy(by, list.begin() + from));
    list.erase(list.begin() + from, list.begin() + to);
    list.insert(list.begin() + from, by.begin(), by.end());
  };
  replace(steps_, window_);
  replace(costs_, new_costs_);
  replace(hashes_, new_hashes_);
}

}  // namespace loipe::search
