// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "jacobian/arithmetic.h"
#include "jacobian/implicit.h"
#include "jacobian/raw_term.h"

namespace loipe {

namespace {

Coordinate shifted(Coordinate coordinate, Label by) {
  for (Stride& s : coordinate.strides) s.label += by;
  if (coordinate.index)
    for (Label& label : coordinate.index->labels) label += by;
  return coordinate;
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

}  // namespace loipe
