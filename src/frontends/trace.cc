// SPDX-License-Identifier: Apache-2.0
#include "frontends/trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace loipe {

namespace detail {

/// The program of one trace while it grows. Traced values share it, so that one
/// that outlives its trace is found out instead of dangling.
class TraceContext {
 public:
  explicit TraceContext(std::string name) : name_(std::move(name)), builder_(name_) {}

  const std::string& name() const { return name_; }
  Builder& builder() {
    if (is_open_) return builder_;
    throw UserError("a traced value of '" + name_ +
                    "' is used after its trace has ended; it has a meaning only inside the traced function");
  }
  void close() { is_open_ = false; }

 private:
  std::string name_;
  Builder builder_;
  bool is_open_ = true;
};

struct TracedAccess {
  static Traced make(std::shared_ptr<TraceContext> context, Value value) {
    return {std::move(context), value.index};
  }
  static const std::shared_ptr<TraceContext>& context(const Traced& x) { return x.context_; }
  static Value value(const Traced& x) { return Value{x.index_}; }
};

void throw_wrong_argument_count(std::size_t parameters, std::size_t arguments) {
  throw UserError("the traced function takes " + std::to_string(parameters) + " tensors, but " +
                  std::to_string(arguments) + " arguments are declared");
}

}  // namespace detail

using detail::TraceContext;
using detail::TracedAccess;

namespace {

/// The innermost trace of this thread, for constants, which have no operand to say
/// where they belong.
thread_local std::shared_ptr<TraceContext> current_trace;

/// Makes a trace the current one, and closes it whatever happens.
class CurrentTrace {
 public:
  explicit CurrentTrace(std::shared_ptr<TraceContext> context)
      : outer_(std::exchange(current_trace, std::move(context))) {}
  ~CurrentTrace() {
    current_trace->close();
    current_trace = std::move(outer_);
  }
  CurrentTrace(const CurrentTrace&) = delete;
  CurrentTrace& operator=(const CurrentTrace&) = delete;

 private:
  std::shared_ptr<TraceContext> outer_;
};

[[noreturn]] void throw_two_traces(const std::string& what, const TraceContext& one,
                                   const TraceContext& other) {
  throw UserError(what + " mixes values of two traces, '" + one.name() + "' and '" + other.name() +
                  "'; a traced value has a meaning only inside the call that made it");
}

/// The one context of all operands.
const std::shared_ptr<TraceContext>& common_context(const OpDef& op, std::span<const Traced> operands) {
  const auto& context = TracedAccess::context(operands.front());
  for (const Traced& operand : operands)
    if (TracedAccess::context(operand) != context)
      throw_two_traces("'" + std::string(op.name.value) + "'", *context, *TracedAccess::context(operand));
  return context;
}

}  // namespace

Program trace(std::string name, std::span<const Argument> arguments, const TracedFunction& function) {
  const auto context = std::make_shared<TraceContext>(std::move(name));
  const CurrentTrace scope(context);
  std::vector<Traced> parameters;
  for (const Argument& argument : arguments)
    parameters.push_back(
        TracedAccess::make(context, context->builder().argument(argument.name, argument.type)));
  std::vector<Value> outputs;
  for (const Traced& result : function(parameters)) {
    if (TracedAccess::context(result) != context)
      throw_two_traces("the result", *context, *TracedAccess::context(result));
    outputs.push_back(TracedAccess::value(result));
  }
  return context->builder().finish(std::move(outputs));
}

TensorType Traced::type() const { return context_->builder().type(Value{index_}); }

Traced::operator bool() const {
  throw UserError(
      "a traced value (" + to_string(type()) +
      ") has no value yet, so it cannot decide an 'if', 'while', '&&' or '?:'; use loipe::select, "
      "logical_and, logical_or or logical_not");
}

Traced emit(const OpDef& op, std::span<const Traced> operands, const Attributes& attributes) {
  const auto& context = common_context(op, operands);
  std::vector<Value> values;
  values.reserve(operands.size());
  for (const Traced& operand : operands) values.push_back(TracedAccess::value(operand));
  return TracedAccess::make(context, context->builder().emit(op, values, attributes));
}

Traced emit_in_current_trace(std::string_view caller, const std::function<Value(Builder&)>& build) {
  if (current_trace == nullptr)
    throw UserError(std::string(caller) +
                    "() makes a constant of the program that is being traced, but this "
                    "thread traces none; call it inside the traced function");
  return TracedAccess::make(current_trace, build(current_trace->builder()));
}

Traced literal_beside(const Traced& other, double number, std::string_view caller) {
  const DType dtype = other.dtype();
  constexpr double kLargestInteger = 0x1p53;  // up to here every integer is a double
  const bool is_whole = std::floor(number) == number && std::abs(number) <= kLargestInteger;
  Tensor tensor(TensorType{dtype, {}});
  if (is_floating(dtype) || is_whole) tensor.set(0, number);
  if (!is_floating(dtype) && tensor.at(0) != number)
    throw UserError(std::string(caller) + ": the number " + format_double(number) + " beside " +
                    to_string(other.type()) + " is no " + std::string(to_string(dtype)) +
                    "; convert() the tensor first");
  const auto& context = TracedAccess::context(other);
  return TracedAccess::make(context, context->builder().constant(std::move(tensor)));
}

std::int64_t from_front(std::string_view function, const Traced& x, std::int64_t axis) {
  const std::int64_t rank = x.rank();
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  throw UserError(describe_call(function, {x}) + " has no axis " + std::to_string(axis) + "; its rank is " +
                  std::to_string(rank));
}

Axes from_front(std::string_view function, const Traced& x, const Axes& axes) {
  Axes result;
  for (std::int64_t axis : axes) result.push_back(from_front(function, x, axis));
  return result;
}

std::string describe_call(std::string_view function, std::span<const Operand> operands) {
  std::vector<std::string> parts;
  for (const Operand& operand : operands)
    parts.push_back(operand.tensor() != nullptr ? to_string(operand.tensor()->type())
                                                : format_double(operand.number()));
  return std::string(function) + "(" + join(parts, ", ") + ")";
}

}  // namespace loipe
