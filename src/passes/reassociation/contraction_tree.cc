// SPDX-License-Identifier: Apache-2.0
#include "passes/reassociation/contraction_tree.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"

namespace loipe::passes {

namespace {

auto key(const OpCost& cost) { return std::tuple(cost.multiplications, cost.additions); }

}  // namespace

ContractionTree::ContractionTree(const ProductTerm& term) : term_(term) {
  require(term.factors.size() <= kMostFactors && term.extents.size() <= kMostLabels,
          "a term of too many factors or labels to associate");
  const Set sets = Set{1} << term.factors.size();
  open_.resize(sets);
  best_.resize(sets);
  const Labels result = bits_of(term.result);
  for (Set set = 1; set < sets; ++set) open_[set] = labels_of(set) & (result | labels_of((sets - 1) ^ set));
  for (Set set = 1; set < sets; ++set)  // subsets have smaller numbers
    best_[set] = std::has_single_bit(set) ? best_single(set) : best_split(set);
}

ContractionTree::Labels ContractionTree::bits_of(const std::vector<int>& labels) {
  Labels bits = 0;
  for (int label : labels)
    if (label != ProductTerm::kNoLabel) bits |= Labels{1} << label;
  return bits;
}

ContractionTree::Labels ContractionTree::labels_of(Set set) const {
  Labels bits = 0;
  for (std::size_t i = 0; i < term_.factors.size(); ++i)
    if (set >> i & 1U) bits |= bits_of(term_.factors[i].labels);
  return bits;
}

std::vector<int> ContractionTree::open_labels(Set set) const {
  std::vector<int> labels;
  Labels left = open_[set];
  for (std::size_t i = 0; i < term_.factors.size(); ++i)
    if (set >> i & 1U)
      for (int label : term_.factors[i].labels)
        if (label != ProductTerm::kNoLabel && (left >> label & 1U)) {
          labels.push_back(label);
          left ^= Labels{1} << label;
        }
  return labels;
}

std::int64_t ContractionTree::combinations(Labels labels) const {
  std::int64_t product = 1;
  for (; labels != 0; labels &= labels - 1)
    product *= term_.extents[static_cast<std::size_t>(std::countr_zero(labels))];
  return product;
}

ContractionTree::Best ContractionTree::best_single(Set set) const {
  return {{.additions = combinations(labels_of(set)) - combinations(open_[set])}, 0};
}

ContractionTree::Best ContractionTree::best_split(Set set) const {
  Best best;
  // Each split once: the first part has the lowest factor.
  const Set lowest = set & (~set + 1);
  for (Set first = (set - 1) & set; first > 0; first = (first - 1) & set) {
    if (!(first & lowest)) continue;
    const Set second = set ^ first;
    const std::int64_t count = combinations(open_[first] | open_[second]);
    OpCost cost{.multiplications = count, .additions = count - combinations(open_[set])};
    cost += best_[first].cost;
    cost += best_[second].cost;
    if (best.first == 0 || key(cost) < key(best.cost)) best = {cost, first};
  }
  return best;
}

}  // namespace loipe::passes
