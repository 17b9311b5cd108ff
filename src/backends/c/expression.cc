// SPDX-License-Identifier: Apache-2.0
#include "backends/c/expression.h"

#include <cmath>
#include <cstdio>

#include "base/check.h"

namespace loipe::c {

using scalar::Op;

const char* type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::boolean: return "uint8_t";
    case DType::i32: return "int32_t";
    case DType::i64: return "int64_t";
  }
  throw InternalError("no dtype");
}

namespace {

/// C has no negative literals: the least number of a type is an expression.
std::string integer_literal(std::int64_t value) {
  if (value >= 0) return std::to_string(value);
  return "(-" + std::to_string(-(value + 1)) + " - 1)";
}

}  // namespace

std::string literal_at(const Tensor& tensor, std::int64_t position) {
  if (is_floating(tensor.dtype())) return literal(tensor.at(position), tensor.dtype());
  if (tensor.dtype() == DType::i64)
    return integer_literal(tensor.elements<std::int64_t>()[static_cast<std::size_t>(position)]);
  return integer_literal(static_cast<std::int64_t>(tensor.at(position)));
}

std::string literal(double value, DType dtype) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  char text[64];
  std::snprintf(text, sizeof text, dtype == DType::f32 ? "%.9g" : "%.17g", value);
  std::string result(text);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  if (dtype == DType::f32) result += "f";
  return std::signbit(value) ? "(" + result + ")" : result;
}

std::string expression(Op op, DType dtype, const std::function<std::string(int)>& operand) {
  const auto& x = operand;
  const auto infix = [&](const char* symbol) { return x(0) + " " + symbol + " " + x(1); };
  const auto logical = [&](const char* symbol) {
    return "(" + x(0) + " != 0) " + symbol + " (" + x(1) + " != 0)";
  };
  const char* suffix = dtype == DType::f32 ? "f" : "";
  switch (op) {
    case Op::add: return infix("+");
    case Op::sub: return infix("-");
    case Op::mul: return infix("*");
    case Op::div: return infix("/");
    case Op::eq: return infix("==");
    case Op::ne: return infix("!=");
    case Op::lt: return infix("<");
    case Op::le: return infix("<=");
    case Op::gt: return infix(">");
    case Op::ge: return infix(">=");
    case Op::logical_and: return logical("&&");
    case Op::logical_or: return logical("||");
    case Op::logical_xor: return logical("!=");
    case Op::logical_not: return x(0) + " == 0";
    case Op::neg: return "-" + x(0);
    case Op::select: return x(0) + " != 0 ? " + x(1) + " : " + x(2);
    case Op::max: return "(isnan(" + x(0) + ") || " + x(0) + " > " + x(1) + ") ? " + x(0) + " : " + x(1);
    case Op::min: return "(isnan(" + x(0) + ") || " + x(0) + " < " + x(1) + ") ? " + x(0) + " : " + x(1);
    case Op::abs: return std::string("fabs") + suffix + "(" + x(0) + ")";
    case Op::round: return std::string("rint") + suffix + "(" + x(0) + ")";
    default: break;
  }
  std::string call = std::string(scalar::name(op)) + suffix + "(" + x(0);
  if (scalar::arity(op) == 2) call += ", " + x(1);
  return call + ")";
}

}  // namespace loipe::c
