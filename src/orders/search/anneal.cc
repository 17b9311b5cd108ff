// SPDX-License-Identifier: Apache-2.0
#include "orders/search/anneal.h"

#include <algorithm>
#include <cmath>

namespace loipe::search {

namespace {

constexpr int kTriesPerStep = 4;
constexpr int kStepsPerCheck = 256;

}  // namespace

Chain::Chain(const Game& game, std::vector<int> order, const AnnealOptions& options)
    : game_(game),
      options_(options),
      rng_(options.seed),
      base_(game.depth()),
      prefix_total_(game.total()),
      order_(std::move(order)),
      costs_(order_.size()),
      hashes_(order_.size()) {
  replay();
}

void Chain::replay() {
  total_ = 0;
  for (std::size_t k = 0; k < order_.size(); ++k) {
    costs_[k] = game_.apply(order_[k]);
    hashes_[k] = game_.hash();
    total_ = saturated_sum(total_, costs_[k]);
  }
  game_.undo_to(base_);
  pointer_ = 0;
  goes_up_ = true;
}

void Chain::run(Incumbent& incumbent, std::atomic<int>& finished_rank) {
  std::int64_t best = Game::kTooMuch;
  const auto note = [&] {
    if (order_total() >= best) return;
    best = order_total();
    std::vector<int> whole = game_.moves();
    whole.resize(base_);
    whole.insert(whole.end(), order_.begin(), order_.end());
    incumbent.offer(whole, best, options_.rank);
  };
  note();
  const std::uint64_t first_work = game_.work();
  const double ratio = std::log(options_.last_temperature / options_.first_temperature);
  for (;;) {
    const std::uint64_t done = game_.work() - first_work;
    if (done >= options_.work || order_.size() < 2 || best <= options_.good_enough) break;
    if (incumbent.is_out_of_time() || finished_rank < options_.rank) break;
    incumbent.report();
    temperature_ = options_.first_temperature *
                   std::exp(ratio * static_cast<double>(done) / static_cast<double>(options_.work));
    for (int step = 0; step < kStepsPerCheck; ++step) {
      for (int attempt = 0; attempt < kTriesPerStep; ++attempt) {
        propose();
        note();
      }
      walk();
    }
  }
  if (best > options_.good_enough) return;
  for (int rank = finished_rank; options_.rank < rank;)
    if (finished_rank.compare_exchange_weak(rank, options_.rank)) break;
}

void Chain::walk() {
  if (goes_up_ && pointer_ + 2 >= order_.size()) goes_up_ = false;
  if (!goes_up_ && pointer_ == 0) goes_up_ = order_.size() > 2;
  if (goes_up_) game_.apply(order_[pointer_++]);
  else if (pointer_ > 0) {
    game_.undo();
    --pointer_;
  }
}

/// Window lengths are drawn with equal weight on every scale, a quarter of them uniformly.
void Chain::propose() {
  const std::size_t most = order_.size() - pointer_;
  const double scale = rng_.uniform();
  const double drawn = rng_.chance(0.25) ? 2 + scale * static_cast<double>(most - 1)
                                         : 2 * std::pow(static_cast<double>(most) / 2, scale);
  const std::size_t length = std::clamp<std::size_t>(static_cast<std::size_t>(drawn), 2, most);
  shuffle_window(length);
  const double slack = -temperature_ * std::log(1 - rng_.uniform());
  const bool is_accepted = play_window(length, slack);
  game_.undo_to(base_ + pointer_);
  if (is_accepted) accept();
}

void Chain::shuffle_window(std::size_t length) {
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(pointer_);
  window_.assign(first, first + static_cast<std::ptrdiff_t>(length));
  switch (rng_.below(5)) {
    case 0: std::ranges::rotate(window_, window_.begin() + 1); break;
    case 1: std::ranges::rotate(window_, window_.end() - 1); break;
    case 2: std::swap(window_.front(), window_.back()); break;
    case 3: std::ranges::reverse(window_); break;
    default:
      std::ranges::rotate(window_, window_.begin() + rng_.between(1, static_cast<std::int64_t>(length) - 1));
  }
}

/// Plays the window, then, on typed graphs, the old order until the position is an old one.
/// False as soon as the new order is dearer than the old one by more than the slack.
bool Chain::play_window(std::size_t length, double slack) {
  new_costs_.clear();
  new_hashes_.clear();
  std::int64_t gained = 0;  // new minus old, of the steps that have been played
  std::int64_t rest = 0;    // of the old order: what could still be saved
  const std::size_t end = game_.is_scalar() ? pointer_ + length : order_.size();
  for (std::size_t k = pointer_; k < end; ++k) rest += costs_[k];
  for (std::size_t k = pointer_; k < order_.size(); ++k) {
    const std::size_t in_window = k - pointer_;
    if (in_window >= length && (game_.is_scalar() || game_.hash() == hashes_[k - 1]))
      return static_cast<double>(gained) <= slack;
    new_costs_.push_back(game_.apply(in_window < length ? window_[in_window] : order_[k]));
    new_hashes_.push_back(game_.hash());
    gained += new_costs_.back() - costs_[k];
    rest -= costs_[k];
    if (static_cast<double>(gained - rest) > slack) return false;
  }
  return static_cast<double>(gained) <= slack;
}

void Chain::accept() {
  std::ranges::copy(window_, order_.begin() + static_cast<std::ptrdiff_t>(pointer_));
  for (std::size_t k = 0; k < new_costs_.size(); ++k) {
    total_ += new_costs_[k] - costs_[pointer_ + k];
    costs_[pointer_ + k] = new_costs_[k];
    hashes_[pointer_ + k] = new_hashes_[k];
  }
}

}  // namespace loipe::search
