// SPDX-License-Identifier: Apache-2.0
#include "jacobian/coordinate.h"

#include <algorithm>

#include "base/check.h"

namespace loipe {

bool IndexArray::operator==(const IndexArray& other) const {
  if (labels != other.labels || is_dynamic() != other.is_dynamic()) return false;
  return is_dynamic() ? value == other.value : numbers == other.numbers || *numbers == *other.numbers;
}

Coordinate Coordinate::table(std::vector<Label> labels, std::vector<std::int64_t> numbers) {
  Coordinate result;
  result.index = IndexArray{std::move(labels),
                            std::make_shared<const std::vector<std::int64_t>>(std::move(numbers)), Value{}};
  return result;
}

bool is_bare(const Coordinate& coordinate, std::int64_t axis_extent, Extents extents) {
  return coordinate.is_label() && extents[coordinate.label()] == axis_extent;
}

void for_each_label(const Coordinate& coordinate, const std::function<void(Label)>& visit) {
  for (const Stride& s : coordinate.strides) visit(s.label);
  if (coordinate.index)
    for (Label label : coordinate.index->labels) visit(label);
}

bool contains(const Coordinate& coordinate, Label label) {
  bool found = false;
  for_each_label(coordinate, [&](Label other) { found = found || other == label; });
  return found;
}

std::vector<Label> labels_of(const Coordinate& coordinate) {
  std::vector<Label> labels;
  for_each_label(coordinate, [&](Label label) { labels.push_back(label); });
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

std::int64_t position(const Coordinate& coordinate, std::span<const std::int64_t> assignment,
                      Extents extents) {
  if (!coordinate.index) {
    std::int64_t result = coordinate.offset;
    for (const Stride& s : coordinate.strides) result += s.stride * assignment[s.label];
    return result;
  }
  require(!coordinate.index->is_dynamic(), "a dynamic coordinate has no static position");
  std::int64_t row = 0;
  for (Label label : coordinate.index->labels) row = row * extents[label] + assignment[label];
  return (*coordinate.index->numbers)[static_cast<std::size_t>(row)];
}

void sort_strides(Coordinate& coordinate) {
  std::sort(coordinate.strides.begin(), coordinate.strides.end(), [](const Stride& a, const Stride& b) {
    const std::int64_t x = std::abs(a.stride), y = std::abs(b.stride);
    return x != y ? x > y : a.label < b.label;
  });
}

void add_affine(Coordinate& target, const Coordinate& other, std::int64_t factor) {
  target.offset += factor * other.offset;
  for (const Stride& s : other.strides) {
    auto same = std::find_if(target.strides.begin(), target.strides.end(),
                             [&](const Stride& t) { return t.label == s.label; });
    if (same == target.strides.end()) target.strides.push_back({s.label, factor * s.stride});
    else same->stride += factor * s.stride;
  }
  std::erase_if(target.strides, [](const Stride& s) { return s.stride == 0; });
  sort_strides(target);
}

void for_each_assignment(std::span<const Label> labels, Extents extents,
                         const std::function<void(std::span<const std::int64_t>)>& visit) {
  std::vector<std::int64_t> assignment(extents.size(), 0);
  for (Label label : labels)
    if (extents[label] == 0) return;
  while (true) {
    visit(assignment);
    std::size_t k = labels.size();
    while (k > 0 && ++assignment[labels[k - 1]] == extents[labels[k - 1]]) assignment[labels[--k]] = 0;
    if (k == 0) return;
  }
}

std::int64_t count_assignments(std::span<const Label> labels, Extents extents) {
  std::int64_t count = 1;
  for (Label label : labels) count *= extents[label];
  return count;
}

Coordinate simplified(const Coordinate& coordinate, Extents extents) {
  if (!coordinate.index || coordinate.index->is_dynamic()) return coordinate;
  const std::vector<Label>& labels = coordinate.index->labels;
  const std::vector<std::int64_t>& numbers = *coordinate.index->numbers;
  if (numbers.empty()) return Coordinate::fixed(0);
  Coordinate affine = Coordinate::fixed(numbers[0]);
  std::int64_t step = 1;  // distance in the table between neighbours along the label
  for (std::size_t k = labels.size(); k-- > 0;) {
    if (extents[labels[k]] > 1) {
      Coordinate one = Coordinate::of(labels[k]);
      add_affine(affine, one, numbers[static_cast<std::size_t>(step)] - numbers[0]);
    }
    step *= extents[labels[k]];
  }
  bool equal = true;
  for_each_assignment(labels, extents, [&](std::span<const std::int64_t> assignment) {
    equal = equal && position(affine, assignment, extents) == position(coordinate, assignment, extents);
  });
  return equal ? affine : coordinate;
}

}  // namespace loipe
