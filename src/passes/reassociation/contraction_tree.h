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

  static constexpr std::size_t kMostLabels = 52;  ///< as many as an einsum has letters

  /// Of at most kMostFactors factors and kMostLabels labels.
  explicit ContractionTree(const ProductTerm& term);

  OpCost cost() const { return best_.back().cost; }

  /// A set of factors, as bits, and the smaller set that it is split into first (with the
  /// rest as the second); a single factor has none.
  using Set = std::uint32_t;
  Set all() const { return static_cast<Set>(best_.size() - 1); }
  Set first_part(Set set) const { return best_[set].first; }

  /// Labels of a set that the result or other factors need, in the order of the factors.
  std::vector<int> open_labels(Set set) const;
  /// Whether a single factor is summed before it is multiplied.
  bool is_summed_first(Set single) const { return best_[single].cost.additions > 0; }

 private:
  struct Best {
    OpCost cost;
    Set first = 0;
  };
  using Labels = std::uint64_t;  ///< as bits
  static Labels bits_of(const std::vector<int>& labels);
  Labels labels_of(Set set) const;
  std::int64_t combinations(Labels labels) const;
  Best best_single(Set set) const;
  Best best_split(Set set) const;

  const ProductTerm& term_;
  std::vector<Labels> open_;  // by set
  std::vector<Best> best_;    // by set
};

}  // namespace loipe::passes
