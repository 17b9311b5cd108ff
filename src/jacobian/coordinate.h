// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// An index variable of a term; its extent is the term's `extents[label]`.
using Label = std::uint32_t;

/// stride * label
struct Stride {
  Label label;
  std::int64_t stride;
  bool operator==(const Stride&) const = default;
};

/// A table of positions over some labels: static numbers (row-major over the
/// labels' extents) or an integer SSA value with one axis per label.
struct IndexArray {
  std::vector<Label> labels;
  std::shared_ptr<const std::vector<std::int64_t>> numbers;  ///< null when dynamic
  Value value;                                               ///< meaningful when dynamic
  bool is_dynamic() const { return numbers == nullptr; }
  bool operator==(const IndexArray& other) const;
};

/// Where along one axis an entry lies, as a function of labels: either
/// offset + sum of stride*label, or an index array over labels (then offset is 0
/// and there are no strides). Reshape groups, windows, strided slices, fixed
/// positions and gathers are all of this one kind.
struct Coordinate {
  std::int64_t offset = 0;
  std::vector<Stride> strides;  ///< no label twice, no stride 0, largest stride first
  std::optional<IndexArray> index;

  static Coordinate fixed(std::int64_t position) { return {position, {}, {}}; }
  static Coordinate of(Label label, std::int64_t stride = 1, std::int64_t offset = 0) {
    return {offset, {{label, stride}}, {}};
  }
  static Coordinate table(std::vector<Label> labels, std::vector<std::int64_t> numbers);

  bool is_affine() const { return !index; }
  bool is_dynamic() const { return index && index->is_dynamic(); }
  bool is_fixed() const { return !index && strides.empty(); }
  bool is_single() const { return !index && strides.size() == 1; }
  /// One label with stride 1 and offset 0. It runs over the whole axis only if
  /// its extent is the axis' extent: see is_bare.
  bool is_label() const { return is_single() && offset == 0 && strides[0].stride == 1; }
  Label label() const { return strides[0].label; }
  bool operator==(const Coordinate&) const = default;
};

using Extents = std::span<const std::int64_t>;

/// A label that runs over the whole axis.
bool is_bare(const Coordinate& coordinate, std::int64_t axis_extent, Extents extents);
bool contains(const Coordinate& coordinate, Label label);
void for_each_label(const Coordinate& coordinate, const std::function<void(Label)>& visit);
/// The labels of the coordinate, ascending.
std::vector<Label> labels_of(const Coordinate& coordinate);

/// The position for one assignment of all labels; the coordinate must be static.
std::int64_t position(const Coordinate& coordinate, std::span<const std::int64_t> assignment,
                      Extents extents);

/// Adds factor * other to an affine coordinate, both affine.
void add_affine(Coordinate& target, const Coordinate& other, std::int64_t factor);
void sort_strides(Coordinate& coordinate);

/// Calls visit(assignment) for all values of `labels`, the last running fastest;
/// `assignment` has room for every label of the extents.
void for_each_assignment(std::span<const Label> labels, Extents extents,
                         const std::function<void(std::span<const std::int64_t>)>& visit);

/// The product of the labels' extents.
std::int64_t count_assignments(std::span<const Label> labels, Extents extents);

/// A static table that is affine in its labels becomes that affine coordinate (N4).
Coordinate simplified(const Coordinate& coordinate, Extents extents);

/// The textual form, used by the ops gather and scatter and by dumps:
/// "a, 2*b+3, 7, #1[a,c]"; #k stands for the k-th operand as index array.
/// Dynamic index arrays print their value's index behind #.
std::string label_name(Label label);
std::string print_coordinates(std::span<const Coordinate> coordinates);
/// The inverse; index arrays become dynamic ones with value.index = k.
std::vector<Coordinate> parse_coordinates(std::string_view text);

}  // namespace loipe
