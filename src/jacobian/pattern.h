// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "jacobian/local_jacobian.h"
#include "jacobian/recorder.h"

namespace loipe {

/// Equal extents and coordinates (labels are numbered canonically by N5).
bool same_pattern(const Term& a, const Term& b);

/// The term with bare labels split along the mixed-radix lists that `other` has in
/// the same axes, when that makes the patterns equal.
std::optional<Term> refined_to(Recorder& recorder, const Term& term, const Term& other, const Shape& out,
                               const Shape& in);

/// How two terms can be stored as one: groups of axes that both terms tie in the
/// same way keep their labels, the axes of all other groups are untied.
class JoinPlan {
 public:
  JoinPlan(const Term& a, const Term& b, const Shape& out, const Shape& in);

  /// Numbers that the joined value stores; the largest integer when the terms cannot
  /// be stored as one.
  std::int64_t stored_elements() const { return stored_elements_; }
  /// The joined term without a meaningful value: for planning further joins.
  Term pattern() const;
  /// Scatters both values into one.
  Term join(Recorder& recorder) const;

 private:
  struct Side {
    const Term* term;
    std::vector<std::int64_t> joined_label;  ///< per label of the term; -1 in an untied group
  };

  void find_groups();
  void choose_labels();
  bool is_tied_alike(const std::vector<std::size_t>& axes) const;
  void keep_group(const std::vector<std::size_t>& axes);
  void untie_group(const std::vector<std::size_t>& axes);
  const Coordinate& coordinate(const Term& term, std::size_t axis) const;
  Value scattered(Recorder& recorder, const Side& side, DType dtype, std::optional<Value> base) const;
  bool is_whole(const Side& side) const;
  Value whole_value(Recorder& recorder, const Side& side, DType dtype) const;

  Shape shape_;  ///< out + in
  std::size_t out_rank_;
  std::vector<std::size_t> group_;       ///< per axis: the smallest axis of its group
  std::vector<Coordinate> joined_axes_;  ///< the joined term's coordinates
  std::vector<std::int64_t> extents_;    ///< of the joined labels
  std::vector<Label> value_labels_;      ///< joined labels that the value has
  bool can_join_ = true;
  std::int64_t stored_elements_ = std::numeric_limits<std::int64_t>::max();
  Side a_, b_;
};

}  // namespace loipe
