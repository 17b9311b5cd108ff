// SPDX-License-Identifier: Apache-2.0
#include "frontends/traced_rule.h"

#include <map>
#include <utility>

#include "accumulation/accumulate.h"
#include "frontends/trace.h"
#include "ops/elementwise/family.h"

namespace loipe {

namespace {

/// Copies nodes of one program into another, those that are asked for and what they need.
class Copier {
 public:
  /// Arguments behind those that `arguments` has a value for cannot be copied.
  Copier(Builder& target, const Program& source, std::span<const Value> arguments, const std::string& owner)
      : target_(target), source_(source), owner_(owner) {
    for (std::size_t i = 0; i < arguments.size(); ++i) copies_.emplace(source.arguments()[i], arguments[i]);
  }

  Value operator()(Value wanted) {
    std::vector<bool> is_needed(wanted.index + 1, false);
    is_needed[wanted.index] = true;
    for (std::uint32_t i = wanted.index + 1; i-- > 0;)
      if (is_needed[i] && !copies_.contains(Value{i}))
        for (Value operand : source_.operands(Value{i})) is_needed[operand.index] = true;
    for (std::uint32_t i = 0; i <= wanted.index; ++i)
      if (is_needed[i] && !copies_.contains(Value{i})) copies_.emplace(Value{i}, copy(Value{i}));
    return copies_.at(wanted);
  }

 private:
  Value copy(Value node) {
    const OpDef& op = source_.op(node);
    if (&op == &argument_op())
      throw UserError(owner_ +
                      ": the derivative is not linear in its directions: it depends on their values");
    if (&op == &constant_op()) return target_.constant(source_.attributes(node).tensor("value"));
    std::vector<Value> operands;
    for (Value operand : source_.operands(node)) operands.push_back(copies_.at(operand));
    return target_.emit(op, operands, source_.attributes(node));
  }

  Builder& target_;
  const Program& source_;
  const std::string& owner_;
  std::map<Value, Value> copies_;
};

/// A term of another program in this one, transposed if asked for. All goes through a draft,
/// which numbers the labels anew.
LocalJacobian copied_term(Builder& builder, Copier& copy, const Term& term, bool is_transposed) {
  TermDraft draft;
  for (std::int64_t extent : term.extents) draft.label(extent);
  const auto moved = [&](Coordinate coordinate) {
    if (coordinate.is_dynamic()) coordinate.index->value = copy(coordinate.index->value);
    return coordinate;
  };
  for (const Coordinate& axis : is_transposed ? term.in : term.out) draft.out_axis(moved(axis));
  for (const Coordinate& axis : is_transposed ? term.out : term.in) draft.in_axis(moved(axis));
  draft.coefficient(term.coefficient);
  if (term.value) draft.value(copy(term.value->value), term.value->axes);
  if (term.mask) draft.mask(copy(term.mask->value), term.mask->axes, term.mask->kind);
  return draft.finish(builder);
}

/// A dense block [first..., second...].
LocalJacobian dense_block(Builder& builder, Value block, std::size_t first_rank, bool is_transposed) {
  TermDraft draft;
  const std::vector<Label> labels = draft.labels(builder.shape(block));
  const auto middle = labels.begin() + static_cast<std::ptrdiff_t>(first_rank);
  const std::vector<Label> first(labels.begin(), middle), second(middle, labels.end());
  draft.out(is_transposed ? second : first).in(is_transposed ? first : second).value(block, labels);
  return draft.finish(builder);
}

}  // namespace

TracedRule::TracedRule(JacobianContext& context, std::string owner)
    : context_(context), owner_(std::move(owner)) {
  for (std::size_t k = 0; k < context.operand_count(); ++k) {
    if (!is_floating(context.operand_type(k).dtype)) continue;
    if (k == context.operand_index) position_ = floating_.size();
    floating_.push_back(context.operand_type(k));
  }
}

Program TracedRule::traced(const TracedFunction& function, const std::vector<TensorType>& directions,
                           const std::vector<TensorType>& results) const {
  std::vector<Argument> arguments;
  for (std::size_t k = 0; k < context_.operand_count(); ++k)
    arguments.push_back({"x" + std::to_string(k), context_.operand_type(k)});
  arguments.push_back({"y", context_.type()});
  for (const TensorType& direction : directions)
    arguments.push_back({"d" + std::to_string(arguments.size()), direction});
  Program program = trace(owner_, arguments, function);
  if (program.outputs().size() != results.size())
    throw UserError(owner_ + ": its derivative gives " + std::to_string(program.outputs().size()) +
                    " tensors, expected " + std::to_string(results.size()));
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const TensorType& type = program.type(program.outputs()[i]); type != results[i])
      throw UserError(owner_ + ": tensor " + std::to_string(i) + " of its derivative is " + to_string(type) +
                      ", expected " + to_string(results[i]));
  return program;
}

Value TracedRule::copied(const Program& program, Value value) const {
  std::vector<Value> arguments;
  for (std::size_t k = 0; k < context_.operand_count(); ++k) arguments.push_back(context_.operand(k));
  arguments.push_back(context_.node);
  return Copier(context_.builder, program, arguments, owner_)(value);
}

LocalJacobian TracedRule::from_partials(const TracedFunction& partials) {
  // Any shapes that broadcast, so the types are checked here.
  std::vector<Argument> arguments;
  for (std::size_t k = 0; k < context_.operand_count(); ++k)
    arguments.push_back({"x" + std::to_string(k), context_.operand_type(k)});
  arguments.push_back({"y", context_.type()});
  const Program program = trace(owner_, arguments, partials);
  if (program.outputs().size() != floating_.size())
    throw UserError(owner_ + ": it has " + std::to_string(program.outputs().size()) + " partials, expected " +
                    std::to_string(floating_.size()) + ", one for each floating operand");
  const Value output = program.outputs()[position_];
  const TensorType& out = context_.type();
  const TensorType* both[] = {&out, &program.type(output)};
  const TensorType* with_operand[] = {&out, &context_.operand_type()};
  const auto fits = [&](std::span<const TensorType* const> types) {
    return types[1]->dtype == out.dtype && (types[1]->shape.empty() || types[1]->rank() == out.rank()) &&
           ops::broadcast_shape(types) == out.shape;
  };
  if (!fits(both) || !fits(with_operand))
    throw UserError(owner_ + ": the partial " + to_string(program.type(output)) + " by the operand " +
                    to_string(context_.operand_type()) + " is none of an elementwise op with the result " +
                    to_string(out) + "; blocks, jvp and vjp take any shapes");
  const Value partial = copied(program, output);
  return ops::diagonal(context_, ops::known_partial(context_, partial));
}

LocalJacobian TracedRule::from_blocks(const TracedFunction& blocks) {
  std::vector<TensorType> types;
  for (const TensorType& operand : floating_) {
    types.push_back({context_.dtype(), context_.type().shape});
    types.back().shape.insert(types.back().shape.end(), operand.shape.begin(), operand.shape.end());
  }
  const Program program = traced(blocks, {}, types);
  return dense_block(context_.builder, copied(program, program.outputs()[position_]),
                     context_.type().shape.size(), false);
}

LocalJacobian TracedRule::from_jvp(const TracedFunction& jvp) {
  const Program program = traced(jvp, floating_, {context_.type()});
  return linear_map(program, 0, position_, false);
}

LocalJacobian TracedRule::from_vjp(const TracedFunction& vjp) {
  const Program program = traced(vjp, {context_.type()}, floating_);
  return linear_map(program, position_, 0, true);
}

LocalJacobian TracedRule::linear_map(Program program, std::size_t output, std::size_t direction,
                                     bool is_transposed) {
  program.set_outputs({program.outputs()[output]});
  const std::size_t operands = context_.operand_count() + 1;  // and the result
  AccumulationRequest request{{operands + direction}, reverse_order(program), {}};
  const Accumulation accumulation = accumulate(program, request);
  std::vector<Value> arguments;
  for (std::size_t k = 0; k + 1 < operands; ++k) arguments.push_back(context_.operand(k));
  arguments.push_back(context_.node);
  Copier copy(context_.builder, accumulation.program, arguments, owner_);
  const LocalJacobian& block = accumulation.blocks[0];
  // What is implicit there multiplies in that program only: its dense block is copied.
  if (block.implicit)
    return dense_block(context_.builder, copy(accumulation.program.outputs()[1]),
                       program.shape(program.outputs()[0]).size(), is_transposed);
  LocalJacobian result;
  for (const Term& term : block.terms)
    for (Term& moved : copied_term(context_.builder, copy, term, is_transposed).terms)
      result.terms.push_back(std::move(moved));
  return result;
}

}  // namespace loipe
