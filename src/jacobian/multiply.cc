// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "jacobian/arithmetic.h"
#include "jacobian/raw_term.h"

namespace loipe {

namespace {

Coordinate shifted(Coordinate coordinate, Label by) {
  for (Stride& s : coordinate.strides) s.label += by;
  if (coordinate.index)
    for (Label& label : coordinate.index->labels) label += by;
  return coordinate;
}

Access access_of(const LabelledValue& value, Label by) {
  Access access{value.value, {}};
  for (Label axis : value.axes) access.at.push_back(Coordinate::of(axis + by));
  return access;
}

/// Scalar programs are made of these: no axes, so no labels and no equations.
Term multiply_scalars(Recorder& recorder, const Term& post, const Term& pre) {
  Term result;
  result.coefficient = post.coefficient * pre.coefficient;
  if (!post.value && !pre.value) return result;
  if (post.value && pre.value) {
    Value a = post.value->value, b = pre.value->value;
    if (recorder.type(a).dtype != recorder.type(b).dtype) {
      a = recorder.convert(a, DType::f64);
      b = recorder.convert(b, DType::f64);
    }
    recorder.count(1, 0);
    result.value = LabelledValue{recorder.multiply(a, b), {}};
    return result;
  }
  result.value = post.value ? post.value : pre.value;
  if (std::abs(result.coefficient) != 1) {
    const Value factor = recorder.scalar(result.coefficient, recorder.type(result.value->value).dtype);
    recorder.count(1, 0);
    result.value->value = recorder.multiply(result.value->value, factor);
    result.coefficient = 1;
  }
  return result;
}

/// [K, in...] -> the Jacobian with the out coordinates of `post` behind it, where
/// K runs over all positions of `outer` in row-major order.
LocalJacobian from_directions(Recorder& recorder, Value directions, const Shape& first, const Shape& second,
                              bool directions_are_out) {
  Shape shape = first;
  shape.insert(shape.end(), second.begin(), second.end());
  const Value dense = recorder.reshape(directions, shape);
  RawTerm term;
  Access access{dense, {}};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const Coordinate at = Coordinate::of(term.add_label(shape[axis]));
    access.at.push_back(at);
    ((axis < first.size()) == directions_are_out ? term.out : term.in).push_back(at);
  }
  term.values.push_back(std::move(access));
  LocalJacobian result;
  if (auto normal = std::move(term).normalised(recorder)) result.terms.push_back(std::move(*normal));
  return result;
}

/// J as directions [K, middle...]: its out axes (or in axes) flattened in front.
Value as_directions(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out, const Shape& in,
                    bool out_first, DType dtype) {
  Value dense = materialize(recorder, jacobian, out, in, dtype);
  if (!out_first) {
    Integers permutation;
    for (std::size_t i = 0; i < in.size(); ++i)
      permutation.push_back(static_cast<std::int64_t>(out.size() + i));
    for (std::size_t i = 0; i < out.size(); ++i) permutation.push_back(static_cast<std::int64_t>(i));
    dense = recorder.builder().emit("transpose", {dense}, {{"permutation", permutation}});
  }
  Shape shape{element_count(out_first ? out : in)};
  const Shape& rest = out_first ? in : out;
  shape.insert(shape.end(), rest.begin(), rest.end());
  return recorder.reshape(dense, shape);
}

/// post * implicit: one VJP per position of out.
LocalJacobian multiply_by_vjp(Recorder& recorder, const LocalJacobian& post, const ImplicitJacobian& pre,
                              const ProductShapes& shapes) {
  recorder.count(element_count(shapes.out) * pre.multiplications(), 0);
  const Value directions = as_directions(recorder, post, shapes.out, shapes.middle, true, recorder.dtype());
  return from_directions(recorder, pre.vjp(recorder.builder(), directions), shapes.out, shapes.in, true);
}

/// implicit * pre: one JVP per position of in.
LocalJacobian multiply_by_jvp(Recorder& recorder, const ImplicitJacobian& post, const LocalJacobian& pre,
                              const ProductShapes& shapes) {
  recorder.count(element_count(shapes.in) * post.multiplications(), 0);
  const Value directions = as_directions(recorder, pre, shapes.middle, shapes.in, false, recorder.dtype());
  return from_directions(recorder, post.jvp(recorder.builder(), directions), shapes.in, shapes.out, false);
}

/// An implicit factor multiplies in a direction that it has; one that has only the
/// other direction is made explicit by it.
LocalJacobian multiply_implicit(Recorder& recorder, const LocalJacobian& post, const LocalJacobian& pre,
                                const ProductShapes& shapes) {
  if (post.implicit && post.implicit->has_jvp())
    return multiply_by_jvp(recorder, *post.implicit, pre, shapes);
  if (pre.implicit && pre.implicit->has_vjp()) return multiply_by_vjp(recorder, post, *pre.implicit, shapes);
  return multiply(recorder, explicit_terms(recorder, post, shapes.out, shapes.middle, recorder.dtype()),
                  explicit_terms(recorder, pre, shapes.middle, shapes.in, recorder.dtype()), shapes);
}

}  // namespace

std::optional<Term> multiply(Recorder& recorder, const Term& post, const Term& pre, const Shape& middle) {
  const bool is_scalar = post.extents.empty() && pre.extents.empty() && post.out.empty() && middle.empty() &&
                         pre.in.empty() && !post.mask && !pre.mask;
  if (is_scalar) return multiply_scalars(recorder, post, pre);

  RawTerm product;
  for (std::int64_t extent : post.extents) product.add_label(extent);
  const auto shift = static_cast<Label>(post.extents.size());
  for (std::int64_t extent : pre.extents) product.add_label(extent);
  product.out = post.out;
  for (const Coordinate& coordinate : pre.in) product.in.push_back(shifted(coordinate, shift));
  product.coefficient = post.coefficient * pre.coefficient;
  if (post.value) product.values.push_back(access_of(*post.value, 0));
  if (pre.value) product.values.push_back(access_of(*pre.value, shift));
  if (post.mask) product.masks.push_back(access_of(*post.mask, 0));
  if (pre.mask) product.masks.push_back(access_of(*pre.mask, shift));
  require(post.in.size() == middle.size() && pre.out.size() == middle.size(),
          "the factors of a product of local Jacobians do not meet");
  for (std::size_t axis = 0; axis < middle.size(); ++axis)
    product.equations.push_back({post.in[axis], shifted(pre.out[axis], shift), middle[axis]});
  if (!product.solve(recorder.builder())) return std::nullopt;
  return std::move(product).normalised(recorder);
}

LocalJacobian multiply(Recorder& recorder, const LocalJacobian& post, const LocalJacobian& pre,
                       const ProductShapes& shapes) {
  if (post.is_zero() || pre.is_zero()) return LocalJacobian::zero();
  if (post.implicit || pre.implicit) return multiply_implicit(recorder, post, pre, shapes);
  LocalJacobian result;
  for (const Term& a : post.terms)
    for (const Term& b : pre.terms)
      if (auto term = multiply(recorder, a, b, shapes.middle))
        add(recorder, result, std::move(*term), shapes.out, shapes.in);
  return result;
}

LocalJacobian explicit_terms(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out,
                             const Shape& in, DType dtype) {
  if (!jacobian.implicit) return jacobian;
  const bool by_vjp = jacobian.implicit->has_vjp() &&
                      (!jacobian.implicit->has_jvp() || element_count(out) <= element_count(in));
  const Shape& seeded = by_vjp ? out : in;
  Shape shape = seeded;
  shape.insert(shape.end(), seeded.begin(), seeded.end());
  std::vector<Label> labels;
  std::vector<Coordinate> diagonal;
  for (std::size_t axis = 0; axis < seeded.size(); ++axis) labels.push_back(static_cast<Label>(axis));
  for (int side = 0; side < 2; ++side)
    for (Label label : labels) diagonal.push_back(Coordinate::of(label));
  const Value unit = recorder.scatter({recorder.scalar(1, dtype), {}}, diagonal, labels, seeded, shape, {});
  Shape directions{element_count(seeded)};
  directions.insert(directions.end(), seeded.begin(), seeded.end());
  const Value seeds = recorder.reshape(unit, directions);
  recorder.count(element_count(seeded) * jacobian.implicit->multiplications(), 0);
  if (by_vjp)
    return from_directions(recorder, jacobian.implicit->vjp(recorder.builder(), seeds), out, in, true);
  return from_directions(recorder, jacobian.implicit->jvp(recorder.builder(), seeds), in, out, false);
}

}  // namespace loipe
