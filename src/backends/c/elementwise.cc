// SPDX-License-Identifier: Apache-2.0
#include "backends/c/elementwise.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

#include "backends/c/block.h"
#include "backends/c/expression.h"
#include "ir/op_def.h"

namespace loipe::c {

namespace {

/// The scalar op of the same name.
std::optional<scalar::Op> scalar_op(std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, scalar::Op> ops;
    for (std::size_t i = 0; i < scalar::kOpCount; ++i)
      ops.emplace(scalar::name(static_cast<scalar::Op>(i)), static_cast<scalar::Op>(i));
    return ops;
  }();
  const auto found = table.find(name);
  if (name.empty() || found == table.end()) return std::nullopt;
  return found->second;
}

/// Makes the texts of scalar code for one dtype.
class Arithmetic {
 public:
  Arithmetic(Block& block, DType dtype) : block_(block), dtype_(dtype) {}

  std::string call(std::string_view helper, const std::string& x) const {
    return block_.helper(helper, dtype_) + "(" + x + ")";
  }
  std::string binary(std::string_view op, const std::string& symbol, const std::string& x,
                     const std::string& y) const {
    return is_integer(dtype_) ? call(op, x + ", " + y) : x + " " + symbol + " " + y;
  }
  std::string one() const { return is_floating(dtype_) ? literal(1, dtype_) : "1"; }

  /// By squaring, in the order of ops/elementwise/scalar.h.
  std::string power(const std::string& x, std::int64_t y) const {
    std::optional<std::string> result;
    std::string square = x;
    for (std::uint64_t n = y < 0 ? 0 - static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y); n > 0;
         n >>= 1) {
      if (n & 1) result = result ? block_.define(dtype_, binary("mul", "*", *result, square)) : square;
      if (n > 1) square = block_.define(dtype_, binary("mul", "*", square, square));
    }
    if (!result) return one();
    return y < 0 ? binary("div", "/", one(), *result) : *result;
  }

  std::string converted(const std::string& x, DType to) const {
    if (to == DType::boolean) return x + " != 0";
    if (is_integer(to) && is_floating(dtype_)) return call(to == DType::i32 ? "to_i32" : "to_i64", x);
    return std::string("(") + type_of(to) + ")" + x;
  }

 private:
  Block& block_;
  DType dtype_;
};

/// Ops on integers and truth values; others are those of expression().
std::optional<std::string> integral(const Arithmetic& c, std::string_view op,
                                    const std::vector<std::string>& x, DType dtype) {
  if (is_floating(dtype)) return std::nullopt;
  if (op == "and") return x[0] + " & " + x[1];
  if (op == "or") return x[0] + " | " + x[1];
  if (op == "xor") return x[0] + " ^ " + x[1];
  if (op == "not") return (dtype == DType::boolean ? "!" : "~") + x[0];
  if (op == "max" || op == "min")
    return x[0] + (op == "max" ? " > " : " < ") + x[1] + " ? " + x[0] + " : " + x[1];
  if (op == "add" || op == "sub" || op == "mul" || op == "div" || op == "rem")
    return c.call(op, x[0] + ", " + x[1]);
  if (op == "neg" || op == "abs") return c.call(op, x[0]);
  return std::nullopt;
}

}  // namespace

bool is_elementwise(std::string_view op) {
  static constexpr std::string_view kMore[] = {
      "convert_element_type", "integer_pow", "iota", "logistic", "rem", "rsqrt", "sign"};
  return op != "argument" && op != "constant" &&
         (scalar_op(op) || std::ranges::find(kMore, op) != std::end(kMore));
}

std::string elementwise(Block& block, Value v, const std::vector<std::string>& x, const Indices& at) {
  const Program& program = block.program();
  const Attributes& attributes = program.attributes(v);
  const std::string_view op = program.op(v).name.value;
  if (op == "iota")
    return std::string("(") + type_of(program.type(v).dtype) + ")(" +
           at[static_cast<std::size_t>(attributes.integer("axis"))].text() + ")";
  const DType dtype = program.type(program.operands(v)[0]).dtype;
  const Arithmetic c(block, dtype);
  const std::string suffix = dtype == DType::f32 ? "f" : "";
  if (op == "convert_element_type") return c.converted(x[0], program.type(v).dtype);
  if (op == "integer_pow") return c.power(x[0], attributes.integer("y"));
  if (op == "sign") return x[0] + " > 0 ? 1 : " + x[0] + " < 0 ? -1 : " + x[0];
  if (const auto text = integral(c, op, x, dtype)) return *text;
  if (op == "rem") return "fmod" + suffix + "(" + x[0] + ", " + x[1] + ")";
  if (op == "rsqrt") return "1 / sqrt" + suffix + "(" + x[0] + ")";
  if (op == "logistic") return "1 / (1 + exp" + suffix + "(-" + x[0] + "))";
  return expression(*scalar_op(op), dtype, [&](int k) { return x[static_cast<std::size_t>(k)]; });
}

Tensor table_of(const Program& program, Value v) {
  // A constant, or an op of which the value is the same for all operands.
  std::vector<Tensor> zeros;
  for (Value operand : program.operands(v)) zeros.emplace_back(program.type(operand));
  std::vector<const Tensor*> operands;
  for (const Tensor& zero : zeros) operands.push_back(&zero);
  return program.op(v).evaluate.value({operands, program.attributes(v), program.type(v)});
}

}  // namespace loipe::c
