// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"

#include "ops/uniform_constant.h"

namespace loipe::ops {

namespace {

DType common_dtype(const InferContext& c) {
  const DType dtype = c.operand(0).dtype;
  for (const TensorType* operand : c.operands)
    if (operand->dtype != dtype)
      throw UserError("operands have dtypes " + std::string(to_string(dtype)) + " and " +
                      std::string(to_string(operand->dtype)) +
                      ", expected one dtype (convert_element_type converts)");
  return dtype;
}

TensorType infer_elementwise(const InferContext& c, bool dtype_fits, const char* expected) {
  const DType dtype = common_dtype(c);
  if (!dtype_fits)
    throw UserError("operands have dtype " + std::string(to_string(dtype)) + ", expected " + expected);
  return {dtype, broadcast_shape(c.operands)};
}

}  // namespace

TensorType infer_floating(const InferContext& c) { return infer_floating_with(c, {}); }

TensorType infer_floating_with(const InferContext& c, std::initializer_list<std::string_view> attributes) {
  expect_attributes(c, attributes);
  return infer_elementwise(c, is_floating(c.operand(0).dtype), "floating point");
}

TensorType infer_numeric(const InferContext& c) {
  expect_attributes(c, {});
  return infer_elementwise(c, c.operand(0).dtype != DType::boolean, "a number type");
}

TensorType infer_logical(const InferContext& c) {
  expect_attributes(c, {});
  return infer_elementwise(c, !is_floating(c.operand(0).dtype), "bool or an integer type");
}

TensorType infer_comparison(const InferContext& c) {
  expect_attributes(c, {});
  return {DType::boolean, infer_elementwise(c, true, "").shape};
}

Shape broadcast_shape(std::span<const TensorType* const> operands) {
  Shape result;
  for (const TensorType* operand : operands) {
    const Shape& shape = operand->shape;
    if (shape.empty()) continue;
    if (result.empty()) {
      result = shape;
      continue;
    }
    const Shape before = result;
    bool fits = shape.size() == result.size();
    for (std::size_t axis = 0; fits && axis < shape.size(); ++axis) {
      fits = shape[axis] == result[axis] || shape[axis] == 1 || result[axis] == 1;
      if (result[axis] == 1) result[axis] = shape[axis];
    }
    if (!fits)
      throw UserError("shapes " + to_string(before) + " and " + to_string(shape) +
                      " do not broadcast: expected rank 0, or equal ranks with extents equal or 1");
  }
  return result;
}

View broadcast_view(const Shape& operand, const Shape& result) {
  if (operand.empty()) return {Integers(result.size(), 0)};
  View view{row_major_strides(operand)};
  for (std::size_t axis = 0; axis < operand.size(); ++axis)
    if (operand[axis] == 1) view.strides[axis] = 0;
  return view;
}

Partial known_partial(JacobianContext& context, Value value) {
  if (const auto number = uniform_constant(context.builder.program(), value)) return *number;
  return value;
}

LocalJacobian diagonal(JacobianContext& context, const Partial& partial) {
  if (partial.coefficient == 0) return LocalJacobian::zero();
  return elementwise_jacobian(context, partial);
}

}  // namespace loipe::ops
