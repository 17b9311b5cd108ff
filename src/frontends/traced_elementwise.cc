// SPDX-License-Identifier: Apache-2.0
// The elementwise functions of loipe/trace.h.
#include <algorithm>

#include "frontends/trace.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

/// Numbers as constants of the dtype of the tensor that decides it: the last one,
/// since the condition of a select comes first.
std::vector<Traced> with_literals(const OpDef& op, std::span<const Operand> operands) {
  const auto decides = std::find_if(operands.rbegin(), operands.rend(),
                                    [](const Operand& operand) { return operand.tensor() != nullptr; });
  std::vector<Traced> tensors;
  tensors.reserve(operands.size());
  for (const Operand& operand : operands)
    tensors.push_back(operand.tensor() != nullptr
                          ? *operand.tensor()
                          : literal_beside(*decides->tensor(), operand.number(), op.name.value));
  return tensors;
}

/// The operands of a binary op, or the branches of a select, have one dtype.
void expect_one_dtype(const OpDef& op, std::span<const Operand> operands, std::span<const Traced> tensors) {
  const std::span<const Traced> alike = tensors.last(std::min<std::size_t>(tensors.size(), 2));
  if (alike.front().dtype() == alike.back().dtype()) return;
  throw UserError(describe_call(op.name.value, operands) + " mixes dtypes " +
                  std::string(to_string(alike.front().dtype())) + " and " +
                  std::string(to_string(alike.back().dtype())) + "; convert() one of them");
}

/// Whether the extents agree axis by axis, counted from the last, where both have it.
bool broadcasts(const Shape& lower, const Shape& higher) {
  return std::equal(lower.rbegin(), lower.rend(), higher.rbegin(),
                    [](std::int64_t a, std::int64_t b) { return a == b || a == 1 || b == 1; });
}

/// Leading axes of extent 1 for operands of a lower rank than the others. Rank 0
/// goes with any rank as it is.
void promote_ranks(const OpDef& op, std::span<const Operand> operands, std::vector<Traced>& tensors) {
  Shape highest;
  for (const Traced& x : tensors)
    if (Shape shape = x.shape(); shape.size() > highest.size()) highest = std::move(shape);
  for (Traced& x : tensors) {
    const Shape shape = x.shape();
    if (shape.empty() || shape.size() == highest.size()) continue;
    if (!broadcasts(shape, highest))
      throw UserError(
          describe_call(op.name.value, operands) + ": shapes " + to_string(shape) + " and " +
          to_string(highest) +
          " do not broadcast: axes are matched from the last one, and their extents must be equal or 1");
    Shape promoted(highest.size() - shape.size(), 1);
    promoted.insert(promoted.end(), shape.begin(), shape.end());
    x = broadcast_to(x, promoted);
  }
}

}  // namespace

Traced elementwise(const OpDef& op, std::span<const Operand> operands, const Attributes& attributes) {
  std::vector<Traced> tensors = with_literals(op, operands);
  expect_one_dtype(op, operands, tensors);
  promote_ranks(op, operands, tensors);
  return emit(op, tensors, attributes);
}

Traced operator+(const Operand& x, const Operand& y) { return elementwise(ops::op_add, {x, y}); }
Traced operator-(const Operand& x, const Operand& y) { return elementwise(ops::op_sub, {x, y}); }
Traced operator*(const Operand& x, const Operand& y) { return elementwise(ops::op_mul, {x, y}); }
Traced operator/(const Operand& x, const Operand& y) { return elementwise(ops::op_div, {x, y}); }
Traced operator-(const Traced& x) { return neg(x); }

Traced operator==(const Operand& x, const Operand& y) { return elementwise(ops::op_eq, {x, y}); }
Traced operator!=(const Operand& x, const Operand& y) { return elementwise(ops::op_ne, {x, y}); }
Traced operator<(const Operand& x, const Operand& y) { return elementwise(ops::op_lt, {x, y}); }
Traced operator<=(const Operand& x, const Operand& y) { return elementwise(ops::op_le, {x, y}); }
Traced operator>(const Operand& x, const Operand& y) { return elementwise(ops::op_gt, {x, y}); }
Traced operator>=(const Operand& x, const Operand& y) { return elementwise(ops::op_ge, {x, y}); }

Traced neg(const Traced& x) { return emit(ops::op_neg, {x}); }
Traced abs(const Traced& x) { return emit(ops::op_abs, {x}); }
Traced sign(const Traced& x) { return emit(ops::op_sign, {x}); }
Traced floor(const Traced& x) { return emit(ops::op_floor, {x}); }
Traced ceil(const Traced& x) { return emit(ops::op_ceil, {x}); }
Traced round(const Traced& x) { return emit(ops::op_round, {x}); }
Traced exp(const Traced& x) { return emit(ops::op_exp, {x}); }
Traced exp2(const Traced& x) { return emit(ops::op_exp2, {x}); }
Traced expm1(const Traced& x) { return emit(ops::op_expm1, {x}); }
Traced log(const Traced& x) { return emit(ops::op_log, {x}); }
Traced log1p(const Traced& x) { return emit(ops::op_log1p, {x}); }
Traced sqrt(const Traced& x) { return emit(ops::op_sqrt, {x}); }
Traced rsqrt(const Traced& x) { return emit(ops::op_rsqrt, {x}); }
Traced cbrt(const Traced& x) { return emit(ops::op_cbrt, {x}); }
Traced sin(const Traced& x) { return emit(ops::op_sin, {x}); }
Traced cos(const Traced& x) { return emit(ops::op_cos, {x}); }
Traced tan(const Traced& x) { return emit(ops::op_tan, {x}); }
Traced asin(const Traced& x) { return emit(ops::op_asin, {x}); }
Traced acos(const Traced& x) { return emit(ops::op_acos, {x}); }
Traced atan(const Traced& x) { return emit(ops::op_atan, {x}); }
Traced sinh(const Traced& x) { return emit(ops::op_sinh, {x}); }
Traced cosh(const Traced& x) { return emit(ops::op_cosh, {x}); }
Traced tanh(const Traced& x) { return emit(ops::op_tanh, {x}); }
Traced asinh(const Traced& x) { return emit(ops::op_asinh, {x}); }
Traced acosh(const Traced& x) { return emit(ops::op_acosh, {x}); }
Traced atanh(const Traced& x) { return emit(ops::op_atanh, {x}); }
Traced logistic(const Traced& x) { return emit(ops::op_logistic, {x}); }
Traced erf(const Traced& x) { return emit(ops::op_erf, {x}); }
Traced erfc(const Traced& x) { return emit(ops::op_erfc, {x}); }
Traced square(const Traced& x) { return integer_pow(x, 2); }
Traced integer_pow(const Traced& x, std::int64_t exponent) {
  return emit(ops::op_integer_pow, {x}, {{"y", exponent}});
}

Traced softplus(const Traced& x) { return emit(ops::op_softplus, {x}); }
Traced silu(const Traced& x) { return emit(ops::op_silu, {x}); }
Traced relu(const Traced& x) { return emit(ops::op_relu, {x}); }
Traced leaky_relu(const Traced& x, double slope) { return emit(ops::op_leaky_relu, {x}, {{"slope", slope}}); }
Traced elu(const Traced& x, double alpha) { return emit(ops::op_elu, {x}, {{"alpha", alpha}}); }
Traced gelu(const Traced& x, GeluForm form) {
  return emit(ops::op_gelu, {x}, {{"form", std::string(form == GeluForm::erf ? "erf" : "tanh")}});
}

Traced pow(const Traced& x, const Operand& y) { return elementwise(ops::op_pow, {x, y}); }
Traced pow(double x, const Traced& y) { return elementwise(ops::op_pow, {x, y}); }
Traced atan2(const Traced& y, const Operand& x) { return elementwise(ops::op_atan2, {y, x}); }
Traced atan2(double y, const Traced& x) { return elementwise(ops::op_atan2, {y, x}); }
Traced max(const Traced& x, const Operand& y) { return elementwise(ops::op_max, {x, y}); }
Traced max(double x, const Traced& y) { return elementwise(ops::op_max, {x, y}); }
Traced min(const Traced& x, const Operand& y) { return elementwise(ops::op_min, {x, y}); }
Traced min(double x, const Traced& y) { return elementwise(ops::op_min, {x, y}); }
Traced rem(const Traced& x, const Operand& y) { return elementwise(ops::op_rem, {x, y}); }
Traced rem(double x, const Traced& y) { return elementwise(ops::op_rem, {x, y}); }

Traced clamp(const Traced& x, const Operand& low, const Operand& high) {
  return elementwise(ops::op_clamp, {x, low, high});
}

Traced logical_and(const Traced& x, const Operand& y) { return elementwise(ops::op_and, {x, y}); }
Traced logical_or(const Traced& x, const Operand& y) { return elementwise(ops::op_or, {x, y}); }
Traced logical_not(const Traced& x) { return emit(ops::op_not, {x}); }

Traced select(const Traced& condition, const Operand& on_true, const Operand& on_false) {
  if (on_true.tensor() == nullptr && on_false.tensor() == nullptr)
    throw UserError(describe_call("select", {condition, on_true, on_false}) +
                    ": both branches are numbers, so their dtype is open; make one a tensor with full()");
  return elementwise(ops::op_select, {condition, on_true, on_false});
}

}  // namespace loipe
