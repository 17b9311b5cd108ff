// SPDX-License-Identifier: Apache-2.0
#include "orders/published/edge_type.h"

#include <loipe/error.h>

#include <string>

namespace loipe::published {
namespace {

struct TypeRecord {
  EdgeType type;
  std::string_view name;
  Structure structure;
};

constexpr Tie O = Tie::none;
constexpr Tie K = Tie::delta;
constexpr Tie D = Tie::diagonal;

constexpr Structure ties(Tie t00, Tie t01, Tie t10, Tie t11, bool has_scalar = false) {
  return {{{{t00, t01}, {t10, t11}}}, has_scalar};
}

/// All types, in the order of their codes. The columns are the pairs
/// (o0,i0) (o0,i1) (o1,i0) (o1,i1).
constexpr std::array<TypeRecord, kTypeCount> kRecords = {{
    {EdgeType::scaled_transpose, "scaled_transpose", ties(O, K, K, O, true)},
    {EdgeType::diagonal_01_delta_10, "diagonal_01_delta_10", ties(O, D, K, O)},
    {EdgeType::diagonal_00_delta_11, "diagonal_00_delta_11", ties(D, O, O, K)},
    {EdgeType::transpose, "transpose", ties(O, K, K, O)},
    {EdgeType::identity, "identity", ties(K, O, O, K)},
    {EdgeType::delta_10, "delta_10", ties(O, O, K, O)},
    {EdgeType::delta_01, "delta_01", ties(O, K, O, O)},
    {EdgeType::delta_11, "delta_11", ties(O, O, O, K)},
    {EdgeType::delta_00, "delta_00", ties(K, O, O, O)},
    {EdgeType::copy, "copy", {}},
    {EdgeType::none, "none", {}},
    {EdgeType::dense, "dense", ties(O, O, O, O)},
    {EdgeType::diagonal_00, "diagonal_00", ties(D, O, O, O)},
    {EdgeType::diagonal_11, "diagonal_11", ties(O, O, O, D)},
    {EdgeType::diagonal_01, "diagonal_01", ties(O, D, O, O)},
    {EdgeType::diagonal_10, "diagonal_10", ties(O, O, D, O)},
    {EdgeType::diagonal_00_diagonal_11, "diagonal_00_diagonal_11", ties(D, O, O, D)},
    {EdgeType::diagonal_01_diagonal_10, "diagonal_01_diagonal_10", ties(O, D, D, O)},
    {EdgeType::delta_00_diagonal_11, "delta_00_diagonal_11", ties(K, O, O, D)},
    {EdgeType::delta_01_diagonal_10, "delta_01_diagonal_10", ties(O, K, D, O)},
    {EdgeType::scaled_identity, "scaled_identity", ties(K, O, O, K, true)},
    {EdgeType::reshape, "reshape", {}},
}};

constexpr bool records_are_in_code_order() {
  for (int i = 0; i < kTypeCount; ++i) {
    if (code(kRecords[static_cast<std::size_t>(i)].type) != i + kMinTypeCode) return false;
  }
  return true;
}
static_assert(records_are_in_code_order());

const TypeRecord& record(EdgeType type) {
  return kRecords[static_cast<std::size_t>(code(type) - kMinTypeCode)];
}

}  // namespace

EdgeType edge_type_from_code(int code) {
  if (code < kMinTypeCode || code > kMaxTypeCode) {
    throw UserError("no edge type has the code " + std::to_string(code) + "; codes run from " +
                    std::to_string(kMinTypeCode) + " to " + std::to_string(kMaxTypeCode));
  }
  return static_cast<EdgeType>(code);
}

std::string_view name(EdgeType type) { return record(type).name; }

const Structure& structure_of(EdgeType type) {
  if (!has_structure(type)) {
    throw InternalError("edge type " + std::string(name(type)) + " has no index structure");
  }
  return record(type).structure;
}

EdgeType type_of(const Structure& structure) {
  for (const TypeRecord& candidate : kRecords) {
    if (has_structure(candidate.type) && candidate.structure == structure) return candidate.type;
  }
  throw InternalError("no edge type has the requested index structure");
}

EdgeType transposed(EdgeType type) {
  if (!has_structure(type)) return type;
  Structure swapped = structure_of(type);
  std::swap(swapped.ties[0][1], swapped.ties[1][0]);
  return type_of(swapped);
}

}  // namespace loipe::published
