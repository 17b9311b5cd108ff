// SPDX-License-Identifier: Apache-2.0
#include "passes/reassociation/contraction_tree.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"

namespace loipe::passes {

namespace {

bool contains(const std::vector<int>& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}

void add_missing(std::vector<int>& labels, const std::vector<int>& more) {
  for (int label : more)
    if (label != ProductTerm::kNoLabel && !contains(labels, label)) labels.push_back(label);
}

auto key(const OpCost& cost) { return std::tuple(cost.multiplications, cost.additions); }

}  // namespace

ContractionTree::ContractionTree(const ProductTerm& term) : term_(term) {
  require(term.factors.size() <= kMostFactors, "a term of too many factors to associate");
  const Set sets = Set{1} << term.factors.size();
  open_.resize(sets);
  best_.resize(sets);
  for (Set set = 1; set < sets; ++set) open_[set] = find_open_labels(set);
  for (Set set = 1; set < sets; ++set)  // subsets have smaller numbers
    best_[set] = std::has_single_bit(set) ? best_single(set) : best_split(set);
}

std::vector<int> ContractionTree::find_open_labels(Set set) const {
  std::vector<int> inside, outside = term_.result;
  for (std::size_t i = 0; i < term_.factors.size(); ++i)
    add_missing(set >> i & 1U ? inside : outside, term_.factors[i].labels);
  std::erase_if(inside, [&](int label) { return !contains(outside, label); });
  return inside;
}

std::int64_t ContractionTree::combinations(const std::vector<int>& labels) const {
  std::int64_t product = 1;
  for (int label : labels) product *= term_.extents[static_cast<std::size_t>(label)];
  return product;
}

std::int64_t ContractionTree::combinations(const std::vector<int>& a, const std::vector<int>& b) const {
  std::vector<int> labels = a;
  add_missing(labels, b);
  return combinations(labels);
}

ContractionTree::Best ContractionTree::best_single(Set set) const {
  const auto factor = static_cast<std::size_t>(std::countr_zero(set));
  std::vector<int> labels;
  add_missing(labels, term_.factors[factor].labels);
  return {{.additions = combinations(labels) - combinations(open_[set])}, 0};
}

ContractionTree::Best ContractionTree::best_split(Set set) const {
  Best best;
  // Each split once: the first part has the lowest factor.
  const Set lowest = set & (~set + 1);
  for (Set first = (set - 1) & set; first > 0; first = (first - 1) & set) {
    if (!(first & lowest)) continue;
    const Set second = set ^ first;
    const std::int64_t count = combinations(open_[first], open_[second]);
    OpCost cost{.multiplications = count, .additions = count - combinations(open_[set])};
    cost += best_[first].cost;
    cost += best_[second].cost;
    if (best.first == 0 || key(cost) < key(best.cost)) best = {cost, first};
  }
  return best;
}

}  // namespace loipe::passes
