// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "orders/game.h"

namespace loipe::search {

/// Types of edges whose products with each other always take multiplications, now and after any
/// eliminations: a set C such that
///   (1) a product of two types of C is not free,
///   (2) products and sums of a type of C with any type are of C again.
/// Computed from the tables of a rule set, whatever their cells say; as large as this finds it.
class CostlyTypes {
 public:
  explicit CostlyTypes(published::RuleSet rules);

  bool contains(published::EdgeType type) const {
    return is_costly_[static_cast<std::size_t>(published::code(type) - published::kMinTypeCode)];
  }

 private:
  std::array<bool, published::kTypeCount> is_costly_{};
};

/// A proven lower bound of what the rest of the game costs, for graphs of any edges.
///
/// By (2) and induction over eliminations, an edge i -> k is of C whenever some path from i to k
/// through eliminated vertices has an edge of C. Take the moment when j is eliminated. Each path
/// from an input that enters j by an edge of C meets, as its last vertex that is left, a
/// predecessor of j whose edge into j is then of C. So these predecessors separate the inputs from
/// j where j keeps only its entering edges of C, and are at least as many as the smallest cut there;
/// the same holds for its successors. Each pair of them costs at least 1 by (1), so j costs at least
/// the product of both cuts, and all vertices together at least the sum.
///
/// Extents do not enter: tied indices may differ in the published graphs. 0 if an extent is 0.
std::int64_t costly_bound(const Game& game, published::RuleSet rules);

}  // namespace loipe::search
