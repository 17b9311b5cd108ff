// SPDX-License-Identifier: Apache-2.0
// take, take_along_axis, scatter_add, one_hot of loipe/trace.h: coordinates for the ops gather and scatter.
#include "frontends/trace.h"
#include "jacobian/coordinate.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

/// Labels of [axes of x before `axis`, axes of the indices, axes of x behind it], and where
/// in x each of them reads: along `axis` at the index operand `operand`.
struct TakeLabels {
  Integers extents;
  std::vector<Coordinate> at;

  TakeLabels(std::string_view function, const Traced& x, const Traced& indices, std::int64_t axis,
             std::uint32_t operand) {
    if (!is_integer(indices.dtype()))
      throw UserError(describe_call(function, {x, indices}) + ": the indices are " +
                      to_string(indices.type()) + ", expected an integer type; convert() changes one");
    const Shape shape = x.shape();
    const auto place = static_cast<std::size_t>(from_front(function, x, axis));
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (k != place) {
        at.push_back(Coordinate::of(add(shape[k])));
        continue;
      }
      IndexArray index{{}, nullptr, Value{operand}};
      for (std::int64_t extent : indices.shape()) index.labels.push_back(add(extent));
      Coordinate coordinate;
      coordinate.index = std::move(index);
      at.push_back(std::move(coordinate));
    }
  }

 private:
  Label add(std::int64_t extent) {
    extents.push_back(extent);
    return static_cast<Label>(extents.size() - 1);
  }
};

/// A gather that reads x where `at` says.
Traced gather(const Traced& x, const Traced& indices, const Integers& extents,
              const std::vector<Coordinate>& at) {
  return emit(ops::op_gather, {x, indices}, {{"extents", extents}, {"from", print_coordinates(at)}});
}

}  // namespace

Traced take(const Traced& x, const Traced& indices, std::int64_t axis) {
  const TakeLabels labels("take", x, indices, axis, 1);
  return gather(x, indices, labels.extents, labels.at);
}

Traced take_along_axis(const Traced& x, const Traced& indices, std::int64_t axis) {
  const auto place = static_cast<std::size_t>(from_front("take_along_axis", x, axis));
  Shape expected = x.shape();
  if (indices.rank() == x.rank()) expected[place] = indices.shape()[place];
  if (!is_integer(indices.dtype()) || indices.shape() != expected)
    throw UserError(
        describe_call("take_along_axis", {x, indices}) + ": the indices are " + to_string(indices.type()) +
        ", expected integers of the shape of the first operand but along axis " + std::to_string(place));
  IndexArray index{{}, nullptr, Value{1}};
  std::vector<Coordinate> at;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    index.labels.push_back(static_cast<Label>(k));
    at.push_back(Coordinate::of(static_cast<Label>(k)));
  }
  at[place] = Coordinate{};
  at[place].index = std::move(index);
  return gather(x, indices, expected, at);
}

Traced scatter_add(const Traced& base, const Traced& indices, const Traced& updates, std::int64_t axis) {
  const TakeLabels labels("scatter_add", base, indices, axis, 2);
  if (updates.type() != TensorType{base.dtype(), labels.extents})
    throw UserError(describe_call("scatter_add", {base, indices, updates}) + ": the updates are " +
                    to_string(updates.type()) + ", expected " +
                    to_string(TensorType{base.dtype(), labels.extents}));
  Axes axes;
  for (std::size_t k = 0; k < labels.extents.size(); ++k) axes.push_back(static_cast<std::int64_t>(k));
  return emit(ops::op_scatter, {updates, base, indices},
              {{"axes", axes},
               {"base", std::int64_t{1}},
               {"extents", labels.extents},
               {"shape", base.shape()},
               {"to", print_coordinates(labels.at)}});
}

Traced one_hot(const Traced& indices, std::int64_t depth, DType dtype) {
  return emit(ops::op_one_hot, {indices}, {{"depth", depth}, {"dtype", dtype}});
}

}  // namespace loipe
