// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "jacobian/local_jacobian.h"

// Tools for the local Jacobian rules of ops.

namespace loipe {

/// Writes one term, which `finish` brings to normal form: labels of extent 1,
/// labels in no coordinate, values with axes of extent 1 are all allowed here.
///
///   TermDraft t;                        // A @ X by X: out (m,n), in (k,n), value A (m,k)
///   Label a = t.label(m), b = t.label(n), c = t.label(k);
///   t.out({a, b}).in({c, b}).value(A, {a, c});
///   return t.finish(builder);
class TermDraft {
 public:
  Label label(std::int64_t extent) {
    term_.extents.push_back(extent);
    return static_cast<Label>(term_.extents.size() - 1);
  }
  /// One label per extent of the shape.
  std::vector<Label> labels(const Shape& shape);

  /// The coordinates of all axes, in order.
  TermDraft& out(const std::vector<Label>& axes);
  TermDraft& in(const std::vector<Label>& axes);
  TermDraft& out_axis(Coordinate coordinate) { return term_.out.push_back(std::move(coordinate)), *this; }
  TermDraft& in_axis(Coordinate coordinate) { return term_.in.push_back(std::move(coordinate)), *this; }

  TermDraft& coefficient(double factor) { return term_.coefficient = factor, *this; }
  TermDraft& value(Value value, std::vector<Label> axes);
  /// A bool value: entries where it is false do not exist.
  TermDraft& mask(Value mask, std::vector<Label> axes, MaskKind kind = MaskKind::hard);

  /// The Jacobian of this one term, in normal form. Values are summed over labels
  /// that stand in no axis, by nodes added to the builder.
  LocalJacobian finish(Builder& builder) const;

 private:
  Term term_;
};

/// The partial derivative of an elementwise op: coefficient * value, where mask.
/// Value and mask have any shape that broadcasts to the result's: the same rank
/// with extents equal or 1, or rank 0.
struct Partial {
  double coefficient = 1;
  std::optional<Value> value;
  std::optional<Value> mask;
  MaskKind kind = MaskKind::hard;

  Partial(double constant) : coefficient(constant) {}
  Partial(Value entries) : value(entries) {}
  Partial(double constant, Value entries) : coefficient(constant), value(entries) {}
  Partial& where(Value condition, MaskKind mask_kind = MaskKind::hard) {
    mask = condition;
    kind = mask_kind;
    return *this;
  }
};

/// The diagonal Jacobian of an elementwise op, for an operand of the result's
/// rank (extents equal or 1) or of rank 0.
LocalJacobian elementwise_jacobian(JacobianContext& context, const Partial& partial);

}  // namespace loipe
