// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <type_traits>

#include "jacobian/rules.h"
#include "ops/emit.h"
#include "ops/indexing.h"
#include "ops/op_list.h"
#include "ops/samples.h"
#include "ops/shape_checks.h"
#include "tensor/visit.h"

// What elementwise ops share. Their operands broadcast: an operand of rank 0 goes
// with anything, all others have one rank and in each axis equal extents or 1.
// All operands have one dtype.

namespace loipe::ops {

// Shape rules: the broadcast shape, after a check of the dtype.
TensorType infer_floating(const InferContext& context);  ///< f32, f64
/// The same with attributes, which the caller checks.
TensorType infer_floating_with(const InferContext& context,
                               std::initializer_list<std::string_view> attributes);
TensorType infer_numeric(const InferContext& context);     ///< f32, f64, i32, i64
TensorType infer_logical(const InferContext& context);     ///< bool, i32, i64
TensorType infer_comparison(const InferContext& context);  ///< any dtype; the result is bool

/// The shape that these broadcast to; UserError when they do not.
Shape broadcast_shape(std::span<const TensorType* const> operands);
/// Reads an operand along the axes of the shape that it broadcasts to.
View broadcast_view(const Shape& operand, const Shape& result);

/// result[i] = f(operands[i]...) for operands of element type T.
template <auto f, class T, class Result, std::size_t... k>
Tensor map_elements(const EvaluateContext& c, std::index_sequence<k...>) {
  Tensor result(c.type);
  const std::span<Result> out = result.elements<Result>();
  const std::array<std::span<const T>, sizeof...(k)> in{c.operand(k).template elements<T>()...};
  const std::array<View, sizeof...(k)> views{broadcast_view(c.operand(k).shape(), c.type.shape)...};
  std::size_t position = 0;
  for_each_index(c.type.shape, views, [&](const std::array<std::size_t, sizeof...(k)>& at) {
    out[position++] = static_cast<Result>(f(in[k][at[k]]...));
  });
  return result;
}

/// result[i] = f(x[i]) for an f that depends on attributes.
template <class F>
Tensor map_floating(const EvaluateContext& c, const F& f) {
  Tensor result(c.type);
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const std::span<const T> in = c.operand(0).elements<T>();
    const std::span<T> out = result.elements<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(in[i]);
  });
  return result;
}

/// One or two, from the number of parameters of f.
template <auto f, class T>
using OperandsOf = std::make_index_sequence<std::is_invocable_v<decltype(f), T> ? 1 : 2>;

template <auto f>
Tensor evaluate_floating(const EvaluateContext& c) {
  return visit_floating(c.type.dtype,
                        [&]<class T>(T) { return map_elements<f, T, T>(c, OperandsOf<f, T>()); });
}

template <auto f>
Tensor evaluate_numeric(const EvaluateContext& c) {
  return visit_dtype(c.type.dtype, [&]<class T>(T) -> Tensor {
    if constexpr (std::is_same_v<T, bool>) throw InternalError("arithmetic on bool");
    else return map_elements<f, T, T>(c, OperandsOf<f, T>());
  });
}

template <auto f>
Tensor evaluate_logical(const EvaluateContext& c) {
  return visit_dtype(c.type.dtype, [&]<class T>(T) -> Tensor {
    if constexpr (std::is_floating_point_v<T>) throw InternalError("logic on floating point");
    else return map_elements<f, T, T>(c, OperandsOf<f, T>());
  });
}

template <auto f>
Tensor evaluate_comparison(const EvaluateContext& c) {
  return visit_dtype(c.operand(0).dtype(),
                     [&]<class T>(T) { return map_elements<f, T, bool>(c, OperandsOf<f, T>()); });
}

// Costs per element of the result.
inline OpCost cost_free(const CostContext&) { return {}; }
inline OpCost cost_additions(const CostContext& c) { return {.additions = c.type.element_count()}; }
inline OpCost cost_multiplications(const CostContext& c) {
  return {.multiplications = c.type.element_count()};
}
inline OpCost cost_divisions(const CostContext& c) { return {.divisions = c.type.element_count()}; }
inline OpCost cost_functions(const CostContext& c) { return {.functions = c.type.element_count()}; }

/// For a partial that is a value of the primal program: a tensor that is known to
/// hold one number everywhere becomes the coefficient, so that products with it
/// fold and no array of equal numbers is stored.
Partial known_partial(JacobianContext& context, Value value);

/// The diagonal Jacobian, or a structural zero when the partial is known to be 0.
LocalJacobian diagonal(JacobianContext& context, const Partial& partial);

/// Constant along every direction: the derivative is a structural zero.
inline LocalJacobian zero_jacobian(JacobianContext&) { return LocalJacobian::zero(); }

}  // namespace loipe::ops
