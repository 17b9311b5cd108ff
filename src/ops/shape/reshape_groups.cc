// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/reshape_groups.h"

#include <algorithm>

namespace loipe::ops {

namespace {

/// Reads the axes of a shape from the innermost outwards, digit by digit. Axes of
/// extent 1 are passed over.
class AxisReader {
 public:
  explicit AxisReader(const Shape& shape) : shape_(shape), end_(shape.size()) { pass_finished_axes(); }

  /// Axes [end, rank) are finished; axis end - 1 is being read.
  std::size_t end() const { return end_; }
  bool is_between_axes() const { return stride_ == 1; }
  /// What is left of the axis being read, and the stride of its next digit.
  std::int64_t rest() const { return shape_[end_ - 1] / stride_; }
  std::int64_t stride() const { return stride_; }

  void take(std::int64_t extent) {
    stride_ *= extent;
    pass_finished_axes();
  }

 private:
  void pass_finished_axes() {
    while (end_ > 0 && stride_ == shape_[end_ - 1]) {
      --end_;
      stride_ = 1;
    }
  }

  const Shape& shape_;
  std::size_t end_;
  std::int64_t stride_ = 1;
};

/// Reads whole axes until both sides have read the same number of elements.
std::int64_t read_group(AxisReader& in, AxisReader& out) {
  const auto take_axis = [](AxisReader& reader) {
    const std::int64_t extent = reader.rest();
    reader.take(extent);
    return extent;
  };
  std::int64_t in_extent = take_axis(in), out_extent = take_axis(out);
  while (in_extent != out_extent) {
    if (in_extent < out_extent) in_extent *= take_axis(in);
    else out_extent *= take_axis(out);
  }
  return in_extent;
}

/// The common digits of the group that starts at the readers, or none.
std::vector<ReshapeGroup::Digit> common_digits(AxisReader in, AxisReader out) {
  std::vector<ReshapeGroup::Digit> digits;
  do {
    const std::int64_t extent = std::min(in.rest(), out.rest());
    if (in.rest() % extent != 0 || out.rest() % extent != 0) return {};
    digits.push_back({extent, in.end() - 1, out.end() - 1, in.stride(), out.stride()});
    in.take(extent);
    out.take(extent);
  } while (!in.is_between_axes() || !out.is_between_axes());
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

std::vector<ReshapeGroup> reshape_groups(const Shape& in, const Shape& out) {
  std::vector<ReshapeGroup> groups;
  AxisReader in_reader(in), out_reader(out);
  while (in_reader.end() > 0) {
    ReshapeGroup group{{0, in_reader.end()}, {0, out_reader.end()}, 1, common_digits(in_reader, out_reader)};
    group.extent = read_group(in_reader, out_reader);
    group.in.first = in_reader.end();
    group.out.first = out_reader.end();
    groups.push_back(std::move(group));
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

}  // namespace loipe::ops
