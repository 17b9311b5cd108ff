// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "jacobian/local_jacobian.h"
#include "jacobian/recorder.h"

namespace loipe {

/// A value read at one coordinate per axis.
struct Access {
  Value value;
  std::vector<Coordinate> at;
  MaskKind kind = MaskKind::hard;  ///< of a mask
};

/// The same value by coordinates; `shift` is added to its labels.
inline Access access_of(const LabelledValue& labelled, Label shift = 0) {
  Access access{labelled.value, {}, labelled.kind};
  for (Label label : labelled.axes) access.at.push_back(Coordinate::of(label + shift));
  return access;
}

/// A term on its way to normal form: values and masks are accesses, equations
/// between coordinates are still to be solved, labels may be left over.
///
///   sum over labels with all equations true of
///     coefficient * product of values * product of masks * e[out] (x) e[in]
class RawTerm {
 public:
  struct Equation {
    Coordinate left, right;
    std::int64_t axis_extent;
  };

  std::vector<std::int64_t> extents;
  std::vector<bool> is_live;  ///< a substituted label is dead
  std::vector<Coordinate> out, in;
  double coefficient = 1;
  std::vector<Access> values, masks;
  std::vector<Equation> equations;

  Label add_label(std::int64_t extent);

  /// Replaces the label by a coordinate of other labels, everywhere; it dies.
  void substitute(Builder& builder, Label label, const Coordinate& replacement);

  /// Solves all equations. False when they have no solution: the term is zero.
  bool solve(Builder& builder);

  /// The term in normal form, or nothing when it is a structural zero. Products
  /// and sums that this takes are recorded and counted.
  std::optional<Term> normalised(Recorder& recorder) &&;

 private:
  void visit_coordinates(const std::function<void(Coordinate&)>& visit);
  bool solve_by_bare_label(Builder& builder);
  bool solve_one(Builder& builder, const Equation& equation);
};

/// The coordinate with `label` replaced; static tables are tabulated anew,
/// dynamic ones are read through recorded nodes.
Coordinate substituted(Builder& builder, const Coordinate& coordinate, Label label,
                       const Coordinate& replacement, Extents extents);

/// The position as an i64 SSA value over the labels (one axis each).
Value position_value(Builder& builder, const Coordinate& coordinate, const std::vector<Label>& labels,
                     Extents extents);

}  // namespace loipe
