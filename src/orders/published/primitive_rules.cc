// SPDX-License-Identifier: Apache-2.0
#include "orders/published/primitive_rules.h"

#include <loipe/error.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

namespace loipe::published {
namespace {

using enum EdgeType;

/// Rows and columns: (n,) is a column (n, 1), a single number is (1, 1).
struct MatrixShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;

  std::int64_t size() const { return rows * columns; }
  bool is_single() const { return rows == 1 && columns == 1; }
  bool is_column() const { return rows > 1 && columns == 1; }
  bool is_row() const { return rows == 1 && columns > 1; }
  bool is_matrix() const { return rows > 1 && columns > 1; }
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

MatrixShape normalised(const Shape& shape, const std::string& primitive) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t extent : shape) {
    if (extent < 1 || extent > kLimit) {
      throw Unsupported("the published counting rule needs extents from 1 to " + std::to_string(kLimit) +
                        ", but '" + primitive + "' has one of " + std::to_string(extent));
    }
  }
  if (std::ranges::all_of(shape, [](std::int64_t extent) { return extent == 1; })) return {1, 1};
  if (shape.size() == 1) return {shape[0], 1};
  if (shape.size() == 2) return {shape[0], shape[1]};
  throw Unsupported("the published counting rule knows no array of rank above 2, but '" + primitive +
                    "' has one of rank " + std::to_string(shape.size()));
}

/// dot_general and the reductions tell vectors from matrices by rank alone, so
/// that (1, n) is a matrix and (1,) a vector.
enum class Form { scalar, vector, matrix };

Form form_of(const Shape& shape) {
  if (shape.size() == 1) return Form::vector;
  return shape.size() == 2 ? Form::matrix : Form::scalar;
}

enum class Family {
  elementwise,
  dot_general,
  reduce_sum,
  reduce_other,
  transpose,
  broadcast,
  copy,
  rearrange,
  constant,
};

struct FamilyRecord {
  std::string_view primitive;
  Family family;
};

constexpr auto kFamilies = std::to_array<FamilyRecord>({
    {"dot_general", Family::dot_general},
    {"reduce_sum", Family::reduce_sum},
    {"reduce_max", Family::reduce_other},
    {"reduce_min", Family::reduce_other},
    {"reduce_prod", Family::reduce_other},
    {"transpose", Family::transpose},
    {"broadcast_in_dim", Family::broadcast},
    {"squeeze", Family::broadcast},
    {"expand_dims", Family::broadcast},
    {"convert_element_type", Family::copy},
    {"reshape", Family::rearrange},
    {"slice", Family::rearrange},
    {"dynamic_slice", Family::rearrange},
    {"dynamic_update_slice", Family::rearrange},
    {"concatenate", Family::rearrange},
    {"gather", Family::rearrange},
    {"pad", Family::rearrange},
    {"rev", Family::rearrange},
    {"stop_gradient", Family::constant},
    {"iota", Family::constant},
});

Family family_of(std::string_view primitive) {
  const auto* record = std::ranges::find(kFamilies, primitive, &FamilyRecord::primitive);
  return record == kFamilies.end() ? Family::elementwise : record->family;
}

/// f(a, b) by a, both broadcast to `out`. A matrix beside a column or a single
/// number is diagonal in its rows only: its columns are a delta.
EdgeType binary_type(const MatrixShape& a, const MatrixShape& b, const MatrixShape& out) {
  if (a.is_single()) return dense;
  if (a.is_column()) return out.is_column() && b.is_single() ? delta_00 : diagonal_00;
  if (a.is_row()) return out.is_row() && b.is_single() ? delta_11 : diagonal_11;
  if (b.is_matrix()) return diagonal_00_diagonal_11;
  return b.is_row() ? delta_00_diagonal_11 : diagonal_00_delta_11;
}

/// With more than two operands each one stands against the largest other.
EdgeType elementwise_type(std::span<const MatrixShape> operands, std::size_t position,
                          const MatrixShape& out) {
  const MatrixShape& own = operands[position];
  if (operands.size() == 1) return own.is_single() ? dense : diagonal_00_diagonal_11;
  MatrixShape other;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (k != position && operands[k].size() > other.size()) other = operands[k];
  }
  return binary_type(own, other, out);
}

using TypePair = std::array<EdgeType, 2>;

/// Product of two matrices by their contracted axes: an axis that survives
/// keeps its place in o and is a delta between o and that operand.
TypePair matrix_product_types(int lhs_axis, int rhs_axis) {
  return {lhs_axis == 1 ? delta_00 : delta_01, rhs_axis == 0 ? delta_11 : delta_10};
}

TypePair dot_general_types(const Shape& lhs, const Shape& rhs, const Params& params) {
  const Form left = form_of(lhs);
  const Form right = form_of(rhs);
  if (left == Form::scalar || right == Form::scalar) return {dense, dense};
  if (left == Form::vector && right == Form::vector) return {dense, dense};
  const bool contracts_one = params.contract_lhs.size() == 1 && params.contract_rhs.size() == 1;
  const int lhs_axis = contracts_one ? params.contract_lhs[0] : -1;
  const int rhs_axis = contracts_one ? params.contract_rhs[0] : -1;
  const auto is_row = [](const Shape& shape) { return shape.size() == 2 && shape[0] == 1 && shape[1] > 1; };
  if (left == Form::vector) {
    if (is_row(rhs) && lhs_axis == 0 && rhs_axis == 1) return {delta_11, delta_00};
    return {delta_01, delta_11};
  }
  if (right == Form::vector) {
    if (is_row(lhs) && lhs_axis == 1 && rhs_axis == 0) return {delta_00, delta_11};
    return {delta_00, dense};
  }
  return contracts_one ? matrix_product_types(lhs_axis, rhs_axis) : TypePair{dense, dense};
}

EdgeType reduction_type(Family family, const Shape& in, const Shape& out, const Params& params) {
  const auto is_single = [](const Shape& shape) {
    return std::ranges::all_of(shape, [](std::int64_t extent) { return extent == 1; });
  };
  if (form_of(in) != Form::matrix || is_single(in)) return dense;
  const bool to_vector = form_of(out) == Form::vector;
  const bool to_row = form_of(out) == Form::matrix && !is_single(out) && out[0] == 1;
  if (family == Family::reduce_sum) {
    if (to_row) return delta_11;
    if (!to_vector) return dense;
    return params.axes == std::vector<int>{0} ? delta_01 : delta_00;
  }
  if (to_row) return diagonal_11;
  return to_vector ? diagonal_00 : dense;
}

EdgeType transpose_type(const MatrixShape& in) {
  if (in.is_single()) return dense;
  if (in.is_column()) return delta_01;
  return in.is_row() ? delta_10 : transpose;
}

void require_operands(const VertexSpec& vertex, std::size_t expected) {
  if (vertex.operands.size() == expected) return;
  throw UserError("'" + vertex.primitive + "' takes " + std::to_string(expected) + " operands, not " +
                  std::to_string(vertex.operands.size()));
}

/// Types of all operands, as if every one were a variable.
std::vector<EdgeType> local_types(const VertexSpec& vertex, Family family, std::span<const Shape> shapes,
                                  std::span<const MatrixShape> operands, const MatrixShape& out) {
  std::vector<EdgeType> types(shapes.size(), none);
  switch (family) {
    case Family::elementwise:
      for (std::size_t k = 0; k < types.size(); ++k) types[k] = elementwise_type(operands, k, out);
      break;
    case Family::dot_general: {
      require_operands(vertex, 2);
      const TypePair pair = dot_general_types(shapes[0], shapes[1], vertex.params);
      types.assign(pair.begin(), pair.end());
      break;
    }
    case Family::reduce_sum:
    case Family::reduce_other:
      require_operands(vertex, 1);
      types[0] = reduction_type(family, shapes[0], vertex.shape, vertex.params);
      break;
    case Family::transpose:
      require_operands(vertex, 1);
      types[0] = transpose_type(operands[0]);
      break;
    case Family::broadcast:
      require_operands(vertex, 1);
      types[0] = operands[0] == out ? identity : transpose;
      break;
    case Family::copy: types.assign(types.size(), copy); break;
    case Family::rearrange: types.assign(types.size(), reshape); break;
    case Family::constant: break;
  }
  return types;
}

Extents extents_of(const MatrixShape& out, const MatrixShape& in) {
  return {static_cast<std::int32_t>(out.rows), static_cast<std::int32_t>(out.columns),
          static_cast<std::int32_t>(in.rows), static_cast<std::int32_t>(in.columns)};
}

}  // namespace

std::vector<Edge> local_edges(const VertexSpec& vertex, std::span<const Shape> operand_shapes) {
  const MatrixShape out = normalised(vertex.shape, vertex.primitive);
  std::vector<MatrixShape> operands;
  for (const Shape& shape : operand_shapes) {
    operands.push_back(normalised(shape, vertex.primitive));
  }
  const std::vector<EdgeType> types =
      local_types(vertex, family_of(vertex.primitive), operand_shapes, operands, out);
  // The reference builder records the first operand's extents on every edge of
  // a concatenation.
  const bool first_extents_only = vertex.primitive == "concatenate";
  std::vector<Edge> edges(types.size());
  for (std::size_t k = 0; k < types.size(); ++k) {
    if (types[k] == none || std::holds_alternative<Literal>(vertex.operands[k])) continue;
    edges[k] = {types[k], extents_of(out, operands[first_extents_only ? 0 : k])};
  }
  return edges;
}

}  // namespace loipe::published
