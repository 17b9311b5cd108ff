// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace loipe::published {

/// Structure of a local Jacobian as the published rule knows it. Every array is
/// a matrix: the Jacobian of destination o by source i has the indices
/// o0, o1 | i0, i1. "diagonal_ab" means that the Jacobian is zero unless
/// o_a = i_b, with values stored along that diagonal; "delta_ab" means the same
/// with a factor [o_a = i_b] that is never stored. The underlying integers are
/// those of the AlphaGrad reference implementation.
enum class EdgeType : std::int8_t {
  none = 0,   ///< no edge
  dense = 1,  ///< no structure
  diagonal_00 = 2,
  diagonal_11 = 3,
  diagonal_01 = 4,
  diagonal_10 = 5,
  diagonal_00_diagonal_11 = 6,  ///< what an elementwise function has
  diagonal_01_diagonal_10 = 7,
  delta_00_diagonal_11 = 8,  ///< also the edge to a copy of a used output
  delta_01_diagonal_10 = 9,
  scaled_identity = 10,  ///< one stored scalar times `identity`
  reshape = 11,          ///< moves entries about: reshape, slice, concatenate
  copy = -1,             ///< passes the other factor's structure through
  delta_00 = -2,
  delta_11 = -3,
  delta_01 = -4,
  delta_10 = -5,
  identity = -6,   ///< delta_00 delta_11
  transpose = -7,  ///< delta_01 delta_10
  diagonal_00_delta_11 = -8,
  diagonal_01_delta_10 = -9,
  scaled_transpose = -10,  ///< one stored scalar times `transpose`
};

inline constexpr int kMinTypeCode = -10;
inline constexpr int kMaxTypeCode = 11;
inline constexpr int kTypeCount = kMaxTypeCode - kMinTypeCode + 1;

constexpr int code(EdgeType type) { return static_cast<int>(type); }

/// The type with this published code; a UserError for any other integer.
EdgeType edge_type_from_code(int code);

/// The enumerator's own name.
std::string_view name(EdgeType type);

/// How one destination axis and one source axis are bound together. The order
/// matters: of two ties in a chain the stronger is the tie of the whole.
enum class Tie : std::uint8_t { none, delta, diagonal };

/// The pairs behind an EdgeType. In a well-formed structure an axis is tied at
/// most once, so `ties` has at most one entry per row and per column.
struct Structure {
  std::array<std::array<Tie, 2>, 2> ties{};  ///< [destination axis][source axis]
  bool has_scalar = false;                   ///< two deltas times one stored number

  friend bool operator==(const Structure&, const Structure&) = default;
};

/// False for none, copy and reshape, which say nothing about index pairs.
constexpr bool has_structure(EdgeType type) {
  return type != EdgeType::none && type != EdgeType::copy && type != EdgeType::reshape;
}

/// The two are inverse to each other on the types that have a structure.
const Structure& structure_of(EdgeType type);
EdgeType type_of(const Structure& structure);

/// The type of the transposed Jacobian (destination and source swapped).
EdgeType transposed(EdgeType type);

}  // namespace loipe::published
