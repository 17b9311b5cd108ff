// SPDX-License-Identifier: Apache-2.0
#include "orders/published/edge_algebra.h"

#include <gtest/gtest.h>
#include <loipe/error.h>

#include <set>
#include <tuple>

namespace loipe::published {
namespace {

using enum EdgeType;

std::vector<EdgeType> all_types() {
  std::vector<EdgeType> types;
  for (int k = kMinTypeCode; k <= kMaxTypeCode; ++k) types.push_back(edge_type_from_code(k));
  return types;
}

TEST(PublishedEdgeType, CodesAndNamesAreDistinct) {
  std::set<std::string_view> names;
  for (const EdgeType type : all_types()) {
    EXPECT_EQ(edge_type_from_code(code(type)), type);
    names.insert(name(type));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kTypeCount));
  EXPECT_THROW(edge_type_from_code(12), UserError);
  EXPECT_THROW(edge_type_from_code(-11), UserError);
}

TEST(PublishedEdgeType, StructureIsInvertible) {
  for (const EdgeType type : all_types()) {
    if (has_structure(type)) {
      EXPECT_EQ(type_of(structure_of(type)), type);
      EXPECT_EQ(transposed(transposed(type)), type);
    } else {
      EXPECT_THROW(structure_of(type), InternalError);
    }
  }
  EXPECT_EQ(transposed(diagonal_01), diagonal_10);
  EXPECT_EQ(transposed(delta_01_diagonal_10), diagonal_01_delta_10);
  EXPECT_EQ(transposed(diagonal_00), diagonal_00);
}

/// (B A)^T = A^T B^T, for types and for costs when all extents are equal.
TEST(PublishedCleanProduct, CommutesWithTransposition) {
  const EdgeAlgebra& algebra = EdgeAlgebra::get(RuleSet::clean);
  const Extents square = {3, 3, 3, 3};
  for (const EdgeType a : all_types()) {
    for (const EdgeType b : all_types()) {
      EXPECT_EQ(transposed(algebra.product_rule(a, b).type),
                algebra.product_rule(transposed(b), transposed(a)).type)
          << code(a) << " " << code(b);
      EXPECT_EQ(algebra.multiplications({a, square}, {b, square}),
                algebra.multiplications({transposed(b), square}, {transposed(a), square}))
          << code(a) << " " << code(b);
    }
  }
}

TEST(PublishedCleanProduct, IsAssociativeInType) {
  const EdgeAlgebra& algebra = EdgeAlgebra::get(RuleSet::clean);
  for (const EdgeType a : all_types()) {
    for (const EdgeType b : all_types()) {
      for (const EdgeType c : all_types()) {
        if (a == reshape || b == reshape || c == reshape) continue;
        const EdgeType ba = algebra.product_rule(a, b).type;
        const EdgeType cb = algebra.product_rule(b, c).type;
        EXPECT_EQ(algebra.product_rule(ba, c).type, algebra.product_rule(a, cb).type)
            << code(a) << " " << code(b) << " " << code(c);
      }
    }
  }
}

bool obeys(const Structure& structure, const std::array<int, 2>& to, const std::array<int, 2>& from) {
  for (std::size_t a = 0; a < 2; ++a) {
    for (std::size_t b = 0; b < 2; ++b) {
      if (structure.ties[a][b] != Tie::none && to[a] != from[b]) return false;
    }
  }
  return true;
}

/// The coordinates under which a non-zero entry is stored; -1 for those that a
/// delta makes redundant.
std::array<int, 4> stored(const Structure& s, const std::array<int, 2>& to, const std::array<int, 2>& from) {
  std::array<int, 4> place = {to[0], to[1], from[0], from[1]};
  for (std::size_t a = 0; a < 2; ++a) {
    for (std::size_t b = 0; b < 2; ++b) {
      if (s.ties[a][b] == Tie::delta) place[a] = place[2 + b] = -1;
    }
  }
  return place;
}

/// Counts, by enumeration, the distinct pairs of stored numbers that meet.
std::int64_t enumerated_cost(EdgeType pre, EdgeType post, int n) {
  const Structure& inner = structure_of(pre);
  const Structure& outer = structure_of(post);
  std::set<std::pair<std::array<int, 4>, std::array<int, 4>>> products;
  const int all = n * n * n * n * n * n;
  for (int k = 0; k < all; ++k) {
    const std::array<int, 2> o = {k % n, k / n % n};
    const std::array<int, 2> v = {k / (n * n) % n, k / (n * n * n) % n};
    const std::array<int, 2> i = {k / (n * n * n * n) % n, k / (n * n * n * n * n)};
    if (obeys(outer, o, v) && obeys(inner, v, i)) {
      products.emplace(stored(outer, o, v), stored(inner, v, i));
    }
  }
  return static_cast<std::int64_t>(products.size());
}

TEST(PublishedCleanProduct, CostIsTheNumberOfStoredPairsThatMeet) {
  const EdgeAlgebra& algebra = EdgeAlgebra::get(RuleSet::clean);
  for (const int n : {2, 3}) {
    const Extents extents = {n, n, n, n};
    for (const EdgeType pre : all_types()) {
      for (const EdgeType post : all_types()) {
        if (algebra.product_rule(pre, post).is_free) continue;
        EXPECT_EQ(algebra.multiplications({pre, extents}, {post, extents}), enumerated_cost(pre, post, n))
            << code(pre) << " " << code(post);
      }
    }
  }
}

/// Each of the six extents a different prime, so that a count names its factors.
TEST(PublishedCleanProduct, KnownCosts) {
  const EdgeAlgebra& algebra = EdgeAlgebra::get(RuleSet::clean);
  const auto cost = [&](EdgeType pre, EdgeType post) {
    return algebra.multiplications({pre, {5, 7, 11, 13}}, {post, {2, 3, 5, 7}});
  };
  EXPECT_EQ(cost(dense, dense), 2 * 3 * 5 * 7 * 11 * 13);
  EXPECT_EQ(cost(delta_00, dense), 2 * 3 * 11 * 7 * 13);  // (o0 o1 i0 v1) and (v1 i1)
  EXPECT_EQ(cost(dense, diagonal_00_diagonal_11), 2 * 3 * 11 * 13);
  EXPECT_EQ(cost(scaled_identity, scaled_identity), 1);
  EXPECT_EQ(cost(identity, dense), 0);
  EXPECT_EQ(cost(dense, reshape), 0);
}

TEST(PublishedCleanSum, CommutesWithItsOperandsAndWithTransposition) {
  const EdgeAlgebra& algebra = EdgeAlgebra::get(RuleSet::clean);
  for (const EdgeType a : all_types()) {
    EXPECT_EQ(algebra.sum_type(none, a), a);
    for (const EdgeType b : all_types()) {
      EXPECT_EQ(algebra.sum_type(a, b), algebra.sum_type(b, a));
      EXPECT_EQ(transposed(algebra.sum_type(a, b)), algebra.sum_type(transposed(a), transposed(b)));
    }
  }
}

TEST(PublishedTables, DifferFromTheCleanOnesInTheListedNumberOfCells) {
  const EdgeAlgebra& published = EdgeAlgebra::get(RuleSet::published);
  const EdgeAlgebra& clean = EdgeAlgebra::get(RuleSet::clean);
  int costs = 0;
  int products = 0;
  int sums = 0;
  for (const EdgeType a : all_types()) {
    for (const EdgeType b : all_types()) {
      const ProductRule& p = published.product_rule(a, b);
      const ProductRule& c = clean.product_rule(a, b);
      costs += (p.is_free != c.is_free || p.factors != c.factors) ? 1 : 0;
      products += p.type != c.type ? 1 : 0;
      sums += published.sum_type(a, b) != clean.sum_type(a, b) ? 1 : 0;
    }
  }
  EXPECT_EQ(costs, 17);
  EXPECT_EQ(products, 21 + 4);
  EXPECT_EQ(sums, 21);
}

TEST(PublishedProduct, RefusesCountsBeyond64Bits) {
  const EdgeAlgebra& algebra = EdgeAlgebra::get(RuleSet::published);
  const Edge huge{dense, {1 << 20, 1 << 20, 1 << 20, 1 << 20}};
  EXPECT_THROW(algebra.multiplications(huge, huge), UserError);
}

}  // namespace
}  // namespace loipe::published
