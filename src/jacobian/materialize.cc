// SPDX-License-Identifier: Apache-2.0
#include "jacobian/materialize.h"

#include <algorithm>
#include <numeric>

#include "jacobian/arithmetic.h"

namespace loipe {

namespace {

/// Whether value[labels] is the dense array itself: one bare label per axis, all
/// different, and a value that has all of them.
bool is_dense(const Term& term, const Shape& out, const Shape& in) {
  std::size_t bare = 0;
  for (std::size_t axis = 0; axis < out.size() + in.size(); ++axis) {
    const bool is_out = axis < out.size();
    const Coordinate& c = is_out ? term.out[axis] : term.in[axis - out.size()];
    const std::int64_t extent = is_out ? out[axis] : in[axis - out.size()];
    if (extent == 1 && c.is_fixed()) continue;
    if (!is_bare(c, extent, term.extents) || c.label() != bare) return false;  // N5: labels in order
    ++bare;
  }
  return term.value && term.value->axes.size() == bare;
}

}  // namespace

Value materialize(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out, const Shape& in,
                  DType dtype) {
  const LocalJacobian terms = explicit_terms(recorder, jacobian, out, in, dtype);
  Shape shape = out;
  shape.insert(shape.end(), in.begin(), in.end());
  std::optional<Value> dense;
  for (const Term& masked : terms.terms) {
    const Term term = without_mask(recorder, masked);
    LabelledValue value{recorder.scalar(term.coefficient, dtype), {}};
    if (term.value) {
      value = {recorder.convert(term.value->value, dtype), term.value->axes};
      if (term.coefficient < 0) value.value = recorder.negate(value.value);
    }
    std::vector<Label> labels(term.extents.size());
    std::iota(labels.begin(), labels.end(), Label{0});
    if (!dense && is_dense(term, out, in)) {
      dense = recorder.reshape(recorder.aligned(value, labels), shape);
      continue;
    }
    std::vector<Coordinate> to = term.out;
    to.insert(to.end(), term.in.begin(), term.in.end());
    dense = recorder.scatter(value, to, labels, term.extents, shape, dense);
  }
  return dense ? *dense : recorder.full(0, shape, dtype);
}

Value materialize(Builder& builder, const LocalJacobian& jacobian, const Shape& out_shape,
                  const Shape& in_shape, DType dtype) {
  Recorder recorder(builder, dtype);
  return materialize(recorder, jacobian, out_shape, in_shape, dtype);
}

}  // namespace loipe
