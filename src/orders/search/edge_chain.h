// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/rng.h"
#include "orders/search/anneal.h"
#include "orders/search/steps.h"

namespace loipe::search {

/// Simulated annealing over sequences of vertex and edge eliminations. Every sequence
/// contains every vertex once, so that it is complete whatever edges go before; a step whose
/// edge is not there when its turn comes does nothing. A pointer walks through the sequence, as in
/// Chain; there, moves shuffle a window of it, insert the elimination of an edge that exists at
/// that moment, or leave one out. Steps after the window are played again until the position is an
/// old one.
class EdgeChain {
 public:
  /// `steps`: all vertices that are left in the game, which is copied.
  EdgeChain(const Game& game, std::vector<Step> steps, const AnnealOptions& options);

  /// Until the work is done or the time is out.
  void run(MovesIncumbent& incumbent);

 private:
  void replay();
  void walk();
  void propose();
  bool insert_edge();
  void leave_out(std::size_t position);
  void shuffle(std::size_t length);
  std::size_t draw_length();
  void attempt(std::size_t length);
  bool plays(std::size_t length, double slack);
  void accept(std::size_t length);
  std::uint64_t hash_before(std::size_t position) const {
    return position == 0 ? base_hash_ : hashes_[position - 1];
  }

  Game game_;
  AnnealOptions options_;
  Rng rng_;
  std::size_t base_;           ///< moves made before the chain
  std::int64_t prefix_total_;  ///< and their cost
  std::uint64_t base_hash_;
  std::size_t most_steps_;
  std::vector<Step> steps_;
  std::vector<std::int64_t> costs_;    ///< of each step
  std::vector<std::uint64_t> hashes_;  ///< after each step
  std::int64_t total_ = 0;
  std::size_t pointer_ = 0;
  bool goes_up_ = true;
  double temperature_ = 0;
  std::vector<Step> window_;             ///< instead of a window of the steps
  std::size_t replayed_ = 0;             ///< old steps behind it that were played again
  std::vector<std::int64_t> new_costs_;  ///< of the window and of what was played again
  std::vector<std::uint64_t> new_hashes_;
};

}  // namespace loipe::search
