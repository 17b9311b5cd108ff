// SPDX-License-Identifier: Apache-2.0
#include "orders/published/edge_algebra.h"

#include <loipe/error.h>

#include <algorithm>
#include <bit>

#include "orders/published/reference_deviations.h"

namespace loipe::published {
namespace {

constexpr std::size_t kAxes = 2;

bool is_pure(EdgeType type) { return type == EdgeType::identity || type == EdgeType::transpose; }

bool stores_nothing(EdgeType type) {
  return type == EdgeType::copy || type == EdgeType::reshape || is_pure(type);
}

/// Adds or drops the scalar so that it stands exactly where two deltas need it.
EdgeType type_with_scalar(Structure structure, bool has_scalar) {
  structure.has_scalar = false;
  const EdgeType type = type_of(structure);
  if (!has_scalar || !is_pure(type)) return type;
  return type == EdgeType::identity ? EdgeType::scaled_identity : EdgeType::scaled_transpose;
}

/// A pair (o_a, v_b) of post and a pair (v_b, i_c) of pre give (o_a, i_c),
/// diagonal if either is; what is tied on one side only becomes dense.
EdgeType product_type(EdgeType pre, EdgeType post) {
  if (pre == EdgeType::none || post == EdgeType::none) return EdgeType::none;
  if (pre == EdgeType::copy) return post;
  if (post == EdgeType::copy) return pre;
  if (pre == EdgeType::reshape || post == EdgeType::reshape) {
    return pre == post ? EdgeType::reshape : EdgeType::dense;
  }
  const Structure& inner = structure_of(pre);
  const Structure& outer = structure_of(post);
  Structure result;
  for (std::size_t o = 0; o < kAxes; ++o) {
    for (std::size_t v = 0; v < kAxes; ++v) {
      for (std::size_t i = 0; i < kAxes; ++i) {
        if (outer.ties[o][v] == Tie::none || inner.ties[v][i] == Tie::none) continue;
        result.ties[o][i] = std::max(outer.ties[o][v], inner.ties[v][i]);
      }
    }
  }
  return type_with_scalar(result, inner.has_scalar || outer.has_scalar);
}

/// Only pairs common to both survive. Two equal pure types give a scaled one
/// (I + I = 2I).
EdgeType sum_type_of(EdgeType existing, EdgeType added) {
  if (existing == EdgeType::none) return added;
  if (added == EdgeType::none || added == EdgeType::copy) return existing;
  if (existing == EdgeType::copy) return added;
  if (existing == EdgeType::reshape || added == EdgeType::reshape) {
    return existing == added ? EdgeType::reshape : EdgeType::dense;
  }
  const Structure& first = structure_of(existing);
  const Structure& second = structure_of(added);
  Structure result;
  for (std::size_t o = 0; o < kAxes; ++o) {
    for (std::size_t i = 0; i < kAxes; ++i) {
      if (first.ties[o][i] == Tie::none || second.ties[o][i] == Tie::none) continue;
      result.ties[o][i] = std::max(first.ties[o][i], second.ties[o][i]);
    }
  }
  return type_with_scalar(result, true);
}

/// Partition of the six indices into classes that ties make equal.
class IndexClasses {
 public:
  IndexClasses() {
    for (std::size_t k = 0; k < kIndexCount; ++k) members_[k] = static_cast<IndexSet>(1U << k);
  }

  void join(Index a, Index b) {
    const auto both = static_cast<IndexSet>(members(a) | members(b));
    for (std::size_t k = 0; k < kIndexCount; ++k) {
      if ((both >> k & 1U) != 0) members_[k] = both;
    }
  }

  IndexSet members(Index index) const { return members_[static_cast<std::size_t>(index)]; }

  /// The preferred member: see Index.
  IndexSet representative(Index index) const {
    return static_cast<IndexSet>(1U << std::countr_zero(members(index)));
  }

 private:
  std::array<IndexSet, kIndexCount> members_{};
};

using Axes = std::array<Index, kAxes>;
constexpr Axes kOut = {Index::o0, Index::o1};
constexpr Axes kMiddle = {Index::v0, Index::v1};
constexpr Axes kIn = {Index::i0, Index::i1};

void join_ties(EdgeType type, const Axes& to, const Axes& from, IndexClasses& classes) {
  const Structure& structure = structure_of(type);
  for (std::size_t a = 0; a < kAxes; ++a) {
    for (std::size_t b = 0; b < kAxes; ++b) {
      if (structure.ties[a][b] != Tie::none) classes.join(to[a], from[b]);
    }
  }
}

/// Classes over which the factor stores values: an untied axis and a diagonal
/// are stored, a delta is not.
IndexSet stored_classes(EdgeType type, const Axes& to, const Axes& from, const IndexClasses& classes) {
  const Structure& structure = structure_of(type);
  IndexSet stored = 0;
  for (std::size_t k = 0; k < kAxes; ++k) {
    const bool to_is_delta = std::ranges::count(structure.ties[k], Tie::delta) > 0;
    const bool from_is_delta = structure.ties[0][k] == Tie::delta || structure.ties[1][k] == Tie::delta;
    if (!to_is_delta) stored |= classes.representative(to[k]);
    if (!from_is_delta) stored |= classes.representative(from[k]);
  }
  return stored;
}

/// One multiplication per combination of the index classes that either factor
/// stores: an einsum over the union of the stored indices.
ProductRule clean_product_rule(EdgeType pre, EdgeType post) {
  ProductRule rule;
  rule.type = product_type(pre, post);
  rule.is_free = rule.type == EdgeType::none || stores_nothing(pre) || stores_nothing(post);
  if (rule.is_free) return rule;
  IndexClasses classes;
  join_ties(post, kOut, kMiddle, classes);
  join_ties(pre, kMiddle, kIn, classes);
  rule.factors = stored_classes(post, kOut, kMiddle, classes) | stored_classes(pre, kMiddle, kIn, classes);
  return rule;
}

std::size_t row(int type_code) { return static_cast<std::size_t>(type_code - kMinTypeCode); }

}  // namespace

EdgeAlgebra::EdgeAlgebra(RuleSet rules) {
  for (int a = kMinTypeCode; a <= kMaxTypeCode; ++a) {
    for (int b = kMinTypeCode; b <= kMaxTypeCode; ++b) {
      const EdgeType first = edge_type_from_code(a);
      const EdgeType second = edge_type_from_code(b);
      products_[row(a)][row(b)] = clean_product_rule(first, second);
      sums_[row(a)][row(b)] = sum_type_of(first, second);
    }
  }
  if (rules == RuleSet::clean) return;
  for (const auto& cell : deviations::kCosts) {
    ProductRule& rule = products_[row(cell.pre)][row(cell.post)];
    rule.is_free = cell.factors == 0;
    rule.factors = cell.factors;
  }
  for (const auto& [pre, post, result] : deviations::kProducts) {
    products_[row(pre)][row(post)].type = edge_type_from_code(result);
  }
  for (const auto& [pre, post, result] : deviations::kForgottenScalars) {
    products_[row(pre)][row(post)].type = edge_type_from_code(result);
  }
  for (const auto& [existing, added, result] : deviations::kSums) {
    sums_[row(existing)][row(added)] = edge_type_from_code(result);
  }
}

const EdgeAlgebra& EdgeAlgebra::get(RuleSet rules) {
  static const EdgeAlgebra published(RuleSet::published);
  static const EdgeAlgebra clean(RuleSet::clean);
  return rules == RuleSet::published ? published : clean;
}

std::int64_t EdgeAlgebra::multiplications(const Edge& pre, const Edge& post) const {
  const ProductRule& rule = product_rule(pre.type, post.type);
  if (rule.is_free) return 0;
  const std::array<std::int32_t, kIndexCount> extents = {post.extents[0], post.extents[1], pre.extents[2],
                                                         pre.extents[3],  post.extents[2], post.extents[3]};
  std::int64_t result = 1;
  for (unsigned rest = rule.factors; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<std::size_t>(std::countr_zero(rest));
    if (__builtin_mul_overflow(result, extents[index], &result)) {
      throw UserError("the multiplications of one elimination do not fit in 64 bits");
    }
  }
  return result;
}

Edge EdgeAlgebra::product(const Edge& pre, const Edge& post) const {
  return {product_rule(pre.type, post.type).type,
          {post.extents[0], post.extents[1], pre.extents[2], pre.extents[3]}};
}

}  // namespace loipe::published
