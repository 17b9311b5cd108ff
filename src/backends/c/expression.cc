// SPDX-License-Identifier: Apache-2.0
#include "backends/c/expression.h"

#include <cmath>
#include <cstdio>

namespace loipe::c {

using scalar::Op;

std::string literal(double value, DType dtype) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  char text[64];
  std::snprintf(text, sizeof text, dtype == DType::f32 ? "%.9g" : "%.17g", value);
  std::string result(text);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  if (dtype == DType::f32) result += "f";
  return value < 0 ? "(" + result + ")" : result;
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
