// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/op_def.h"
#include "passes/reassociation/product_term.h"

namespace loipe::passes {

/// The cheapest way to compute a term from products of two: fewest multiplications, then
/// fewest additions. A label that only one factor has is summed first.
class ContractionTree {
 public:
  static constexpr std::size_t kMostFactors = 6;  ///< 3^6 splits are looked at

  /// Of at most kMostFactors factors.
  explicit ContractionTree(const ProductTerm& term);

  OpCost cost() const { return best_.back().cost; }

  /// A set of factors, as bits, and the smaller set that it is split into first (with the
  /// rest as the second); a single factor has none.
  using Set = std::uint32_t;
  Set all() const { return static_cast<Set>(best_.size() - 1); }
  Set first_part(Set set) const { return best_[set].first; }

  /// Labels of a set that the result or other factors need, in the order of the factors.
  const std::vector<int>& open_labels(Set set) const { return open_[set]; }
  /// Whether a single factor is summed before it is multiplied.
  bool is_summed_first(Set single) const { return best_[single].cost.additions > 0; }

 private:
  struct Best {
    OpCost cost;
    Set first = 0;
  };
  std::vector<int> find_open_labels(Set set) const;
  std::int64_t combinations(const std::vector<int>& labels) const;
  std::int64_t combinations(const std::vector<int>& a, const std::vector<int>& b) const;
  Best best_single(Set set) const;
  Best best_split(Set set) const;

  const ProductTerm& term_;
  std::vector<std::vector<int>> open_;  // by set
  std::vector<Best> best_;              // by set
};

}  // namespace loipe::passes
