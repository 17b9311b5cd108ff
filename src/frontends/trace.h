// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/trace.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "ir/builder.h"

namespace loipe {

/// Runs the function once on stand-ins for the arguments and returns the recorded
/// program. Results may be arguments, constants, and the same value several times.
/// UserError for a result that belongs to another trace.
Program trace(std::string name, std::span<const Argument> arguments, const TracedFunction& function);

// What the functions of loipe/trace.h are made of. Each records nodes in the
// program that the operands belong to.

/// One node of any op on operands as they are. Numbers are not allowed.
Traced emit(const OpDef& op, std::span<const Traced> operands, const Attributes& attributes = {});
inline Traced emit(const OpDef& op, std::initializer_list<Traced> operands,
                   const Attributes& attributes = {}) {
  return emit(op, std::span(operands.begin(), operands.size()), attributes);
}

/// One node of an elementwise op, after numbers became constants and operands of
/// lower rank got leading axes (a node each).
Traced elementwise(const OpDef& op, std::span<const Operand> operands, const Attributes& attributes = {});
inline Traced elementwise(const OpDef& op, std::initializer_list<Operand> operands,
                          const Attributes& attributes = {}) {
  return elementwise(op, std::span(operands.begin(), operands.size()), attributes);
}

/// The number as a rank-0 constant in the program of `other`, in its dtype; UserError,
/// naming the caller, when the dtype cannot hold it.
Traced literal_beside(const Traced& other, double number, std::string_view caller);

/// What `build` adds to the program that is being traced on this thread; UserError,
/// naming the caller, when there is none.
Traced emit_in_current_trace(std::string_view caller, const std::function<Value(Builder&)>& build);

/// An axis counted from the front; UserError, naming the function, when there is none.
std::int64_t from_front(std::string_view function, const Traced& x, std::int64_t axis);
Axes from_front(std::string_view function, const Traced& x, const Axes& axes);

/// "select(bool[2], f32[2], 0.5)": a call for messages.
std::string describe_call(std::string_view function, std::span<const Operand> operands);
inline std::string describe_call(std::string_view function, std::initializer_list<Operand> operands) {
  return describe_call(function, std::span(operands.begin(), operands.size()));
}

}  // namespace loipe
