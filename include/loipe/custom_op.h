// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/trace.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

namespace loipe {

/// What a user-defined op is: a value, computed by C++ on tensors, and a derivative, given as
/// traced functions, which therefore holds for every elimination order and can itself be
/// differentiated.
struct CustomOpDefinition {
  /// Its name in programs: `custom(%x, %y) {op="name"}`. Unique in the process.
  std::string name;
  std::size_t operand_count = 1;
  /// The type of the result; UserError for operand types that it does not take.
  std::function<TensorType(std::span<const TensorType> operands)> type;
  /// The result, of that type, of operands of these types. It must always give the same result for
  /// the same operands; it may be called by several threads at once, and while compiling.
  std::function<Tensor(std::span<const Tensor* const> operands)> evaluate;

  // The derivative: one of the four, or none. Each gets the operands, then the result, as
  // traced tensors; results stand in the order of the floating operands, f below.

  /// Of an elementwise op: d result / d f for each f, of a shape that broadcasts to the result's.
  /// Each f has the result's rank with extents equal or 1, or rank 0.
  TracedFunction partials = {};
  /// d result / d f for each f, dense: of shape result + f.
  TracedFunction blocks = {};
  /// (operands, result, a tangent of the type of each f) -> the tangent of the result. It must be
  /// linear in the tangents.
  TracedFunction jvp = {};
  /// (operands, result, a cotangent of the result's type) -> the cotangent of each f. It must be
  /// linear in the cotangent.
  TracedFunction vjp = {};
};

/// A user-defined op, to be called in traced functions. Its Jacobian has the structure that the
/// traced functions have: of a JVP it is the Jacobian by the tangents, of a VJP the transpose of
/// the Jacobian by the cotangent, and so either is enough for every order.
///
///   const loipe::CustomOp wave({.name = "wave",
///                               .operand_count = 1,
///                               .type = [](auto types) { return types[0]; },
///                               .evaluate = wave_of_tensor,
///                               .partials = [](auto v) { return std::vector{cos(v[0])}; }});
///   auto J = loipe::jacobian([&](auto x) { return wave(2 * x); }, {{"x", {DType::f64, {3}}}});
///
/// Both back ends call `evaluate`, one node at a time. The definition stays for the life of the
/// process, so that programs may outlive the CustomOp; copies are the same op.
class CustomOp {
 public:
  /// UserError for a definition that is incomplete, has two derivatives, or a name in use.
  explicit CustomOp(CustomOpDefinition definition);

  const std::string& name() const { return name_; }

  /// One node of the program that the operands belong to.
  Traced call(std::span<const Traced> operands) const;
  template <std::same_as<Traced>... Operands>
  Traced operator()(const Operands&... operands) const {
    const std::initializer_list<Traced> list{operands...};
    return call(std::span(list.begin(), list.size()));
  }

 private:
  std::string name_;
};

}  // namespace loipe
