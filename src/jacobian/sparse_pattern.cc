// SPDX-License-Identifier: Apache-2.0
#include "jacobian/sparse_pattern.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace loipe {

namespace {

/// Ascending, each once.
void sort_positions(std::vector<std::int64_t>& positions) {
  const auto is_out_of_order = [](std::int64_t a, std::int64_t b) { return a >= b; };
  if (std::ranges::adjacent_find(positions, is_out_of_order) == positions.end()) return;
  std::ranges::sort(positions);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
}

void check_size(const BlockShape& shape) {
  const std::int64_t rows = shape.rows(), columns = shape.columns();
  if (columns > 0 && rows > std::numeric_limits<std::int64_t>::max() / columns)
    throw ResourceError("a Jacobian block of " + std::to_string(rows) + " by " + std::to_string(columns) +
                        " elements has positions beyond 63 bits; differentiate by smaller parts");
}

/// As many as 2^31, which take 48 GB: more are a mistake, mostly a run-time index.
void check_count(double entries, const BlockShape& shape) {
  if (entries <= 0x1p31) return;
  throw ResourceError("a Jacobian block of " + std::to_string(shape.rows()) + " by " +
                      std::to_string(shape.columns()) +
                      " elements has more than 2^31 entries that can differ from zero, since an axis that is "
                      "indexed by a run-time value counts as dense; give the index as a constant, or ask for "
                      "the structured form");
}

}  // namespace

KnownPositions::KnownPositions(const Term& term, const BlockShape& shape)
    : out_shape_(shape.example_out()), in_shape_(shape.in), extents_(term.extents) {
  out_ = known(std::span(term.out).subspan(shape.has_examples ? 1 : 0), out_shape_);
  in_ = known(term.in, in_shape_);
  std::vector<bool> is_used(extents_.size(), false);
  for (const auto* axes : {&out_, &in_})
    for (const Coordinate& coordinate : *axes)
      for_each_label(coordinate, [&](Label label) { is_used[label] = true; });
  for (Label label = 0; label < extents_.size(); ++label)
    if (is_used[label]) labels_.push_back(label);
}

std::vector<Coordinate> KnownPositions::known(std::span<const Coordinate> axes, const Shape& shape) {
  std::vector<Coordinate> result(axes.begin(), axes.end());
  for (std::size_t axis = 0; axis < result.size(); ++axis) {
    if (!result[axis].is_dynamic()) continue;
    dynamic_.push_back(result[axis]);
    result[axis] = Coordinate::of(static_cast<Label>(extents_.size()));
    extents_.push_back(shape[axis]);
  }
  return result;
}

double KnownPositions::count() const {
  double product = 1;
  for (Label label : labels_) product *= static_cast<double>(extents_[label]);
  return product;
}

std::int64_t KnownPositions::flat(std::span<const std::int64_t> assignment) const {
  std::int64_t result = 0;
  for (std::size_t axis = 0; axis < out_.size(); ++axis)
    result = result * out_shape_[axis] + position(out_[axis], assignment, extents_);
  for (std::size_t axis = 0; axis < in_.size(); ++axis)
    result = result * in_shape_[axis] + position(in_[axis], assignment, extents_);
  return result;
}

std::vector<std::int64_t> KnownPositions::positions() const {
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(count_assignments(labels_, extents_)));
  for_each_assignment(labels_, extents_,
                      [&](std::span<const std::int64_t> assignment) { result.push_back(flat(assignment)); });
  return result;
}

std::vector<std::int64_t> KnownPositions::positions(const Tensor& support,
                                                    const std::vector<Label>& axes) const {
  // Over the value's labels too: one that is none of `labels_` runs over examples.
  std::vector<Label> labels = labels_;
  labels.insert(labels.end(), axes.begin(), axes.end());
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  std::vector<std::int64_t> result;
  for_each_assignment(labels, extents_, [&](std::span<const std::int64_t> assignment) {
    std::int64_t element = 0;
    for (Label label : axes) element = element * extents_[label] + assignment[label];
    if (support.at(element) != 0) result.push_back(flat(assignment));
  });
  return result;
}

SparsePattern sparse_pattern(const LocalJacobian& block, const BlockShape& shape, const KnownZeros* zeros) {
  check_size(shape);
  std::vector<std::int64_t> all;
  if (block.implicit) {
    check_count(static_cast<double>(shape.rows()) * static_cast<double>(shape.columns()), shape);
    all.resize(static_cast<std::size_t>(shape.rows() * shape.columns()));
    std::iota(all.begin(), all.end(), 0);
  }
  for (const Term& term : block.terms) {
    const KnownPositions known(term, shape);
    check_count(static_cast<double>(all.size()) + known.count(), shape);
    const Tensor* support = zeros && term.value ? zeros->support(term.value->value) : nullptr;
    std::vector<std::int64_t> positions =
        support ? known.positions(*support, term.value->axes) : known.positions();
    if (all.empty()) all = std::move(positions);
    else all.insert(all.end(), positions.begin(), positions.end());
  }
  sort_positions(all);
  SparsePattern pattern{shape.rows(), shape.columns(), {}, {}};
  pattern.rows.reserve(all.size());
  pattern.columns.reserve(all.size());
  for (std::int64_t at : all) {
    pattern.rows.push_back(at / shape.columns());
    pattern.columns.push_back(at % shape.columns());
  }
  return pattern;
}

}  // namespace loipe
