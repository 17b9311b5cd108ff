// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/elementwise/family.h"
#include "ops/shape/moved.h"

namespace loipe::ops {

namespace {

Integers stride_of(const Attributes& attributes) {
  return integers_or(attributes, "stride", Integers(attributes.integers("start").size(), 1));
}

TensorType infer_slice(const InferContext& c) {
  expect_attributes(c, {"limit", "start", "stride"});
  const TensorType& x = c.operand(0);
  const Integers &start = c.attributes.integers("start"), &limit = c.attributes.integers("limit");
  const Integers stride = stride_of(c.attributes);
  expect_length("start", start, x.rank());
  expect_length("limit", limit, x.rank());
  expect_length("stride", stride, x.rank());
  TensorType type{x.dtype, {}};
  for (std::size_t axis = 0; axis < x.shape.size(); ++axis) {
    if (start[axis] < 0 || start[axis] > limit[axis] || limit[axis] > x.shape[axis])
      throw UserError("axis " + std::to_string(axis) + " is sliced from " + std::to_string(start[axis]) +
                      " to " + std::to_string(limit[axis]) + ", expected 0 <= start <= limit <= extent " +
                      std::to_string(x.shape[axis]));
    if (stride[axis] < 1) throw UserError(quoted("stride", stride) + " must be at least 1 in every axis");
    const std::int64_t length = limit[axis] - start[axis];
    type.shape.push_back(length == 0 ? 0 : (length - 1) / stride[axis] + 1);
  }
  return type;
}

Tensor evaluate_slice(const EvaluateContext& c) {
  const Integers& start = c.attributes.integers("start");
  const Integers stride = stride_of(c.attributes);
  View view{row_major_strides(c.operand(0).shape())};
  for (std::size_t axis = 0; axis < start.size(); ++axis) {
    view.offset += start[axis] * view.strides[axis];
    // A stride past the end is never taken; bounded, so that it cannot overflow.
    view.strides[axis] *= std::min(stride[axis], c.operand(0).shape()[axis] + 1);
  }
  return read_along(c.operand(0), view, c.type);
}

LocalJacobian slice_jacobian(JacobianContext& c) {
  const Integers start = c.attributes().integers("start"), stride = stride_of(c.attributes());
  TermDraft term;
  const std::vector<Label> labels = term.labels(c.type().shape);
  term.out(labels);
  for (std::size_t axis = 0; axis < labels.size(); ++axis)
    term.in_axis(Coordinate::of(labels[axis], stride[axis], start[axis]));
  return term.finish(c.builder);
}

std::vector<Sample> slice_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape shape, Integers start, Integers limit, Integers stride) {
    Attributes attributes{{"start", std::move(start)}, {"limit", std::move(limit)}};
    if (!stride.empty()) attributes.set("stride", std::move(stride));
    samples.push_back({{draw_tensor(rng, dtype, std::move(shape), small_integer)}, std::move(attributes)});
  };
  append(DType::f64, {}, {}, {}, {});
  append(DType::f64, {5}, {1}, {4}, {});
  append(DType::f64, {5}, {0}, {5}, {});
  append(DType::f64, {7}, {1}, {7}, {2});
  append(DType::f64, {7}, {2}, {3}, {3});
  append(DType::f64, {3, 4}, {1, 0}, {3, 4}, {1, 3});
  append(DType::f64, {3, 1, 4}, {0, 0, 3}, {2, 1, 4}, {});
  append(DType::f64, {4}, {2}, {2}, {});
  append(DType::f64, {0, 3}, {0, 1}, {0, 3}, {});
  append(DType::i32, {5}, {1}, {4}, {});
  append(DType::boolean, {5}, {1}, {4}, {2});
  return samples;
}

}  // namespace

constinit const OpDef op_slice{
    .name = "slice",
    .summary = "every stride-th entry from start up to, but not including, limit, per axis",
    .arity = kUnary,
    .infer = infer_slice,
    .evaluate = evaluate_slice,
    .jacobian = slice_jacobian,
    .cost = cost_free,
    .samples = slice_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "slice",
    .onnx_name = "Slice",
};

}  // namespace loipe::ops
