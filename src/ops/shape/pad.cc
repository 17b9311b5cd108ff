// SPDX-License-Identifier: Apache-2.0
// Along each axis, entry i of the operand lands at low + (interior + 1) i. Negative
// low and high cut entries off; the others form one run, so that the operand's
// part of the result is again an affine window.
#include "ops/elementwise/family.h"
#include "ops/shape/moved.h"

namespace loipe::ops {

namespace {

/// The entries of the operand that land inside the result, along one axis.
struct Landing {
  std::int64_t first;  ///< operand position of the first one
  std::int64_t count;
  std::int64_t start;  ///< result position of the first one
  std::int64_t stride;
};

std::vector<Landing> landings(const Attributes& attributes, const Shape& operand, const Shape& result) {
  const Integers &low = attributes.integers("low"), &interior = attributes.integers("interior");
  std::vector<Landing> axes;
  for (std::size_t axis = 0; axis < operand.size(); ++axis) {
    const std::int64_t stride = interior[axis] + 1;
    const std::int64_t first = low[axis] < 0 ? (-low[axis] + stride - 1) / stride : 0;
    const std::int64_t start = low[axis] + first * stride;
    const std::int64_t room = start < result[axis] ? (result[axis] - 1 - start) / stride + 1 : 0;
    axes.push_back({first, std::clamp<std::int64_t>(operand[axis] - first, 0, room), start, stride});
  }
  return axes;
}

TensorType infer_pad(const InferContext& c) {
  expect_attributes(c, {"high", "interior", "low"});
  const TensorType &x = c.operand(0), &padding = c.operand(1);
  if (padding != TensorType{x.dtype, {}})
    throw UserError("the padding value is " + to_string(padding) + ", expected " +
                    to_string(TensorType{x.dtype, {}}));
  const Integers &low = c.attributes.integers("low"), &high = c.attributes.integers("high");
  const Integers& interior = c.attributes.integers("interior");
  expect_length("low", low, x.rank());
  expect_length("high", high, x.rank());
  expect_length("interior", interior, x.rank());
  TensorType type{x.dtype, {}};
  for (std::size_t axis = 0; axis < x.shape.size(); ++axis) {
    if (interior[axis] < 0) throw UserError(quoted("interior", interior) + " must not be negative");
    const std::int64_t gaps = std::max<std::int64_t>(x.shape[axis] - 1, 0);
    std::int64_t extent = 0;
    if (__builtin_mul_overflow(gaps, interior[axis], &extent) ||
        __builtin_add_overflow(extent, x.shape[axis], &extent) ||
        __builtin_add_overflow(extent, low[axis], &extent) ||
        __builtin_add_overflow(extent, high[axis], &extent))
      throw UserError("axis " + std::to_string(axis) + " would get an extent that is too large to count");
    if (extent < 0)
      throw UserError("axis " + std::to_string(axis) + " of extent " + std::to_string(x.shape[axis]) +
                      " would get the extent " + std::to_string(extent) +
                      " from low=" + std::to_string(low[axis]) + ", high=" + std::to_string(high[axis]) +
                      ", interior=" + std::to_string(interior[axis]));
    type.shape.push_back(extent);
  }
  return type;
}

Tensor evaluate_pad(const EvaluateContext& c) {
  Tensor result = read_along(c.operand(1), {Integers(c.type.shape.size(), 0)}, c.type);
  View source{row_major_strides(c.operand(0).shape())}, target{row_major_strides(c.type.shape)};
  Shape extents;
  std::size_t axis = 0;
  for (const Landing& landing : landings(c.attributes, c.operand(0).shape(), c.type.shape)) {
    extents.push_back(landing.count);
    source.offset += landing.first * source.strides[axis];
    target.offset += landing.start * target.strides[axis];
    target.strides[axis] *= landing.stride;
    ++axis;
  }
  move_elements(extents, c.operand(0), source, result, target);
  return result;
}

LocalJacobian pad_operand_jacobian(JacobianContext& c) {
  TermDraft term;
  for (const Landing& landing : landings(c.attributes(), c.operand_type().shape, c.type().shape)) {
    if (landing.count == 0) return LocalJacobian::zero();
    const Label label = term.label(landing.count);
    term.in_axis(Coordinate::of(label, 1, landing.first));
    term.out_axis(Coordinate::of(label, landing.stride, landing.start));
  }
  return term.finish(c.builder);
}

/// 1 where the operand does not land. That is no affine window, so it is a mask:
/// a padded bool tensor.
LocalJacobian padding_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value operand_part = full(b, c.operand_type(0).shape, 0, DType::boolean);
  const Value is_padding =
      b.emit(op_pad, {operand_part, b.scalar(1, DType::boolean)}, Attributes(c.attributes()));
  TermDraft term;
  const std::vector<Label> labels = term.labels(c.type().shape);
  return term.out(labels).in({}).mask(is_padding, labels).finish(b);
}

LocalJacobian pad_jacobian(JacobianContext& c) {
  return c.operand_index == 0 ? pad_operand_jacobian(c) : padding_jacobian(c);
}

std::vector<Sample> pad_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape shape, Integers low, Integers high, Integers interior) {
    samples.push_back(
        {{draw_tensor(rng, dtype, std::move(shape), small_integer),
          draw_tensor(rng, dtype, {}, small_integer)},
         {{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)}}});
  };
  append(DType::f64, {}, {}, {}, {});
  append(DType::f64, {3}, {1}, {2}, {0});
  append(DType::f64, {3}, {0}, {0}, {0});
  append(DType::f64, {3}, {1}, {0}, {2});
  append(DType::f64, {2, 3}, {1, 0}, {0, 2}, {0, 1});
  append(DType::f64, {5}, {-1}, {-2}, {0});
  append(DType::f64, {4}, {-2}, {-1}, {2});
  append(DType::f64, {4}, {-4}, {1}, {0});
  append(DType::f64, {2}, {3}, {-3}, {0});
  append(DType::f64, {1, 2}, {1, 1}, {1, 0}, {3, 0});
  append(DType::f64, {0}, {1}, {2}, {1});
  append(DType::f64, {2}, {-1}, {-1}, {0});
  append(DType::i32, {3}, {1}, {2}, {0});
  append(DType::boolean, {3}, {1}, {2}, {1});
  return samples;
}

}  // namespace

constinit const OpDef op_pad{
    .name = "pad",
    .summary = "x with a padding value before, after and between its entries; negative widths cut off",
    .arity = kBinary,
    .infer = infer_pad,
    .evaluate = evaluate_pad,
    .jacobian = pad_jacobian,
    .cost = cost_free,
    .samples = pad_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "pad",
    .onnx_name = "Pad",
};

}  // namespace loipe::ops
