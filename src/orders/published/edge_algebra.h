// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "orders/published/edge_type.h"

namespace loipe::published {

/// Which tables count: those of the AlphaGrad reference implementation, which
/// all published numbers rest on, or what the structures really give.
enum class RuleSet : std::uint8_t { published, clean };

/// Extents o0, o1 | i0, i1. Kept per edge, not per vertex, because the
/// reference graph builder records some edges with another array's extents.
using Extents = std::array<std::int32_t, 4>;

/// The five integers that describe an edge.
struct Edge {
  EdgeType type = EdgeType::none;
  Extents extents{};

  friend bool operator==(const Edge&, const Edge&) = default;
};

/// The six indices of a product post * pre, where post is the Jacobian of o by
/// v and pre that of v by i. Their order is the order of preference when tied
/// indices of unequal extent must agree on one size: o, then i, then v.
enum class Index : std::uint8_t { o0, o1, i0, i1, v0, v1 };
inline constexpr int kIndexCount = 6;

/// A set of indices, one bit each.
using IndexSet = std::uint8_t;
constexpr IndexSet bit(Index index) { return static_cast<IndexSet>(1U << static_cast<unsigned>(index)); }

/// What the types alone say about a product.
struct ProductRule {
  EdgeType type = EdgeType::none;
  bool is_free = true;   ///< no multiplications, whatever the extents
  IndexSet factors = 0;  ///< otherwise the product of these extents
};

/// Product and sum of edges by type, tabulated once per rule set.
class EdgeAlgebra {
 public:
  /// The shared, immutable tables.
  static const EdgeAlgebra& get(RuleSet rules);

  const ProductRule& product_rule(EdgeType pre, EdgeType post) const {
    return products_[position(pre)][position(post)];
  }

  /// Type after `added` is absorbed by `existing`; none is the neutral element.
  EdgeType sum_type(EdgeType existing, EdgeType added) const {
    return sums_[position(existing)][position(added)];
  }

  /// Multiplications of post * pre. UserError if they exceed 64 bits.
  std::int64_t multiplications(const Edge& pre, const Edge& post) const;

  /// post * pre, with the extents of its ends.
  Edge product(const Edge& pre, const Edge& post) const;

 private:
  explicit EdgeAlgebra(RuleSet rules);

  static std::size_t position(EdgeType type) { return static_cast<std::size_t>(code(type) - kMinTypeCode); }

  template <typename Entry>
  using Table = std::array<std::array<Entry, kTypeCount>, kTypeCount>;
  Table<ProductRule> products_{};
  Table<EdgeType> sums_{};
};

}  // namespace loipe::published
