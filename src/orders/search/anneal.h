// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "base/rng.h"
#include "orders/game.h"
#include "orders/search/incumbent.h"

namespace loipe::search {

struct AnnealOptions {
  std::uint64_t seed = 0;
  std::uint64_t work = 0;        ///< as counted by Game::work: fixes the schedule
  double first_temperature = 1;  ///< in multiplications
  double last_temperature = 0.1;
  int rank = 0;                  ///< for the incumbent
  std::int64_t good_enough = 0;  ///< a cost that nothing is below
};

/// One chain of simulated annealing over orders. A pointer walks through the order, up and
/// down; the game stands at the pointer. There, moves change a window of the order that
/// begins at the pointer: a vertex is moved to the other end, two are swapped, the window
/// is reversed or rotated. Only the window is played again: afterwards the position is the
/// old one, on scalar graphs always, on typed ones as soon as the hashes agree again.
class Chain {
 public:
  /// `order`: the vertices that are left in the game, which is copied.
  Chain(const Game& game, std::vector<int> order, const AnnealOptions& options);

  /// Until the work is done, the cost is good enough, the time is out, or a chain of
  /// lower rank has found what is good enough (`finished_rank`).
  void run(Incumbent& incumbent, std::atomic<int>& finished_rank);

 private:
  void replay();
  void walk();
  void propose();
  void shuffle_window(std::size_t length);
  bool play_window(std::size_t length, double slack);
  void accept();
  std::int64_t order_total() const { return prefix_total_ + total_; }

  Game game_;
  AnnealOptions options_;
  Rng rng_;
  std::size_t base_;           ///< moves made before the chain
  std::int64_t prefix_total_;  ///< and their cost
  std::vector<int> order_;
  std::vector<std::int64_t> costs_;    ///< of each step of the order
  std::vector<std::uint64_t> hashes_;  ///< after each step
  std::int64_t total_ = 0;
  std::size_t pointer_ = 0;
  bool goes_up_ = true;
  double temperature_ = 0;
  std::vector<int> window_;
  std::vector<std::int64_t> new_costs_;
  std::vector<std::uint64_t> new_hashes_;
};

}  // namespace loipe::search
