// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "jacobian/coordinate.h"

namespace loipe {

/// What a sum may do with the entries that a mask hides.
enum class MaskKind : std::uint8_t {
  hard,  ///< nothing: they may hold anything, and factors beside them too
  /// take them for 0 and multiply: what the mask hides is 0 already, and factors that are
  /// summed with it are finite. Products that sum nothing still do not form them.
  soft,
};

/// An SSA value with one label per axis.
struct LabelledValue {
  Value value;
  std::vector<Label> axes;
  MaskKind kind = MaskKind::hard;  ///< of a mask
  bool operator==(const LabelledValue&) const = default;
};

/// One term of a local Jacobian d(out)/d(in). It means
///
///   J = sum over all values of the labels of
///       coefficient * value * mask * e[out coordinates] (x) e[in coordinates]
///
/// with one coordinate per axis of out and of in. A label that stands in several
/// axes, on either side, ties them (diagonal, Kronecker product, batch). The
/// value has an axis for a subset of the labels and is constant along the rest;
/// no value means 1. The mask (bool) selects entries; what it hides is not there
/// at all and is never multiplied, so 0*inf is never formed (but see MaskKind).
///
/// Normal form, kept by `TermDraft::finish` and by every operation:
///  N1 no label has extent 1; an axis of extent 1 has the coordinate 0;
///  N2 every label of value and mask occurs in a coordinate;
///  N3 every label occurs in a coordinate (a label in none is a factor: its extent);
///  N4 index arrays that are affine, constant or empty have become affine;
///  N5 labels are numbered by first appearance in out, then in.
struct Term {
  std::vector<std::int64_t> extents;
  std::vector<Coordinate> out;
  std::vector<Coordinate> in;
  double coefficient = 1;
  std::optional<LabelledValue> value;
  std::optional<LabelledValue> mask;

  std::int64_t extent(Label label) const { return extents[label]; }
  /// +1 or -1 without a value: a product with it costs nothing.
  bool is_unit() const { return !value && (coefficient == 1 || coefficient == -1); }
  /// Stored numbers: elements of the value, 1 for a constant.
  std::int64_t stored_elements() const;
};

class ImplicitJacobian;

/// d(out)/d(in) as a sum of terms; no terms at all is a structural zero. Instead
/// of terms it can be implicit: known only by how it multiplies.
struct LocalJacobian {
  std::vector<Term> terms;
  std::shared_ptr<const ImplicitJacobian> implicit;

  static LocalJacobian zero() { return {}; }
  bool is_zero() const { return terms.empty() && !implicit; }
};

/// A local Jacobian that is never stored (attention, solves, user-defined ops):
/// it multiplies from the left and from the right. Directions are batched: the
/// leading axis of extent K holds K cotangents or tangents.
class ImplicitJacobian {
 public:
  virtual ~ImplicitJacobian() = default;
  /// Of the directions that it takes.
  virtual DType dtype() const = 0;
  virtual bool has_vjp() const { return true; }
  virtual bool has_jvp() const { return true; }
  /// The first so many axes of out and of in are tied: extents are equal, and nothing
  /// mixes along them (a batch). Products keep them tied and form no entries between
  /// different positions.
  virtual std::size_t tied_axes() const { return 0; }
  /// [K, out...] -> [K, in...]; an Unsupported error when has_vjp() is false.
  virtual Value vjp(Builder& builder, Value cotangents) const = 0;
  /// [K, in...] -> [K, out...]
  virtual Value jvp(Builder& builder, Value tangents) const = 0;
  /// Multiplications for one direction.
  virtual std::int64_t multiplications() const = 0;
};

/// What a local Jacobian rule sees: the node in the program under construction
/// (which holds all primal values), and the operand to differentiate by.
struct JacobianContext {
  Builder& builder;
  Value node;
  std::size_t operand_index;

  Value operand() const { return operand(operand_index); }
  Value operand(std::size_t i) const { return builder.program().operands(node)[i]; }
  std::size_t operand_count() const { return builder.program().operands(node).size(); }
  const TensorType& type() const { return builder.type(node); }
  const TensorType& operand_type() const { return builder.type(operand()); }
  const TensorType& operand_type(std::size_t i) const { return builder.type(operand(i)); }
  const Attributes& attributes() const { return builder.program().attributes(node); }
  DType dtype() const { return type().dtype; }
};

/// "a,b | b,c : %v[a,c] where m[b]": for messages and dumps.
std::string to_string(const Term& term);
std::string to_string(const LocalJacobian& jacobian);

}  // namespace loipe
