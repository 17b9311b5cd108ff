// SPDX-License-Identifier: Apache-2.0
#include "passes/transposes/transposes.h"

#include <algorithm>
#include <optional>

#include "jacobian/coordinate.h"
#include "ops/op_list.h"
#include "ops/recorded/einsum_spec.h"
#include "passes/rebuild.h"

namespace loipe::passes {

namespace {

template <class Sequence>
Sequence permuted(const Sequence& sequence, const Integers& permutation) {
  Sequence result;
  for (std::int64_t axis : permutation) result.push_back(sequence[static_cast<std::size_t>(axis)]);
  return result;
}

class Transposer {
 public:
  explicit Transposer(const Program& program)
      : program_(program), rebuild_(program), users_(program.size()), order_(program.size()) {
    const std::vector<bool> is_live = live_nodes(program);
    for (std::uint32_t i = 0; i < program.size(); ++i)
      if (is_live[i])
        for (Value operand : program.operands(Value{i})) users_[operand.index].push_back(Value{i});
    for (Value output : program.outputs()) users_[output.index].push_back(output);
  }

  Program run() {
    for (std::uint32_t i = 0; i < program_.size(); ++i) rewrite(Value{i});
    return rebuild_.finish();
  }

 private:
  /// Operations between the transpose and what it is pushed to, at most.
  static constexpr int kDeepest = 8;

  bool is(Value v, const OpDef& op) const { return &program_.op(v) == &op; }
  Value operand(Value v) const { return program_.operands(v)[0]; }
  const Integers& permutation(Value v) const { return program_.attributes(v).integers("permutation"); }
  bool is_sum_or_product(Value v) const {
    return is(v, ops::op_add) || is(v, ops::op_sub) || is(v, ops::op_mul) || is(v, ops::op_neg);
  }

  void rewrite(Value node) {
    if (is(node, ops::op_transpose) && takes_any_order(operand(node), kDeepest)) {
      rebuild_.replace(node, written(operand(node), permutation(node), kDeepest));
    } else if (Integers order = order_for_users(node); !order.empty()) {
      rebuild_.replace(node, written(node, order, kDeepest));
      order_[node.index] = std::move(order);
    } else if (is(node, ops::op_einsum)) {
      rebuild_.replace(node, einsum(node, {}));
    } else if (is(node, ops::op_reduce_sum) && !order_[operand(node).index].empty()) {
      rebuild_.replace(node, sum(node));
    } else {
      rebuild_.copy(node);
    }
  }

  /// The axis of v that is the last one of the user's result; nothing where that has no such axis.
  std::optional<std::size_t> last_axis_for(Value user, Value v) const {
    const EinsumSpec spec = EinsumSpec::parse(program_.attributes(user).text("spec"));
    if (spec.result.empty()) return std::nullopt;
    const auto place = std::ranges::find(program_.operands(user), v) - program_.operands(user).begin();
    const std::vector<Label>& labels = spec.operands[static_cast<std::size_t>(place)];
    const auto axis = std::ranges::find(labels, spec.result.back());
    return axis == labels.end() ? std::nullopt : std::optional<std::size_t>(axis - labels.begin());
  }

  /// The order with that axis last in which all einsums that read v go through their results; empty if it is
  /// last already, if they do not agree, or if others read v.
  Integers order_for_users(Value v) const {
    std::optional<std::size_t> last;
    if (!is_free(v, kDeepest)) return {};
    for (Value user : users_[v.index]) {
      if (is(user, ops::op_reduce_sum) && program_.attributes(user).integers("axes").size() == 1) continue;
      if (user == v || !is(user, ops::op_einsum)) return {};
      const std::optional<std::size_t> axis = last_axis_for(user, v);
      if (last && axis && *axis != *last) return {};
      if (axis) last = axis;
    }
    const Shape& shape = program_.shape(v);
    if (!last || *last + 1 == shape.size()) return {};
    Integers order;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (axis != *last) order.push_back(static_cast<std::int64_t>(axis));
    order.push_back(static_cast<std::int64_t>(*last));
    return order;
  }

  /// Whether the value can be computed with its axes in any order at no cost, in `depth` steps.
  bool takes_any_order(Value v, int depth) const { return users_[v.index].size() == 1 && is_free(v, depth); }
  /// The same for all who read it.
  bool is_free(Value v, int depth) const {
    if (depth == 0) return false;
    if (is(v, ops::op_einsum)) return true;
    if (is(v, ops::op_scatter))
      return !program_.attributes(v).has("base") || reads_any_order(program_.operands(v)[1], depth);
    return is_sum_or_product(v) && std::ranges::all_of(program_.operands(v), [&](Value x) {
             return program_.shape(x) != program_.shape(v) || reads_any_order(x, depth);
           });
  }
  bool reads_any_order(Value v, int depth) const {
    return is(v, ops::op_transpose) || takes_any_order(v, depth - 1);
  }

  /// The value with its axes in this order.
  Value written(Value v, const Integers& order, int depth) {
    if (is(v, ops::op_transpose)) {
      const Integers both = permuted(permutation(v), order);
      return std::ranges::is_sorted(both) ? rebuild_.of(operand(v)) : written(operand(v), both, depth);
    }
    if (depth < kDeepest && !takes_any_order(v, depth))
      return rebuild_.emit(ops::op_transpose, {rebuild_.of(v)}, {{"permutation", order}});
    if (is(v, ops::op_einsum)) return einsum(v, order);
    if (is(v, ops::op_scatter)) return scatter(v, order, depth);
    std::vector<Value> operands;
    for (Value x : program_.operands(v))
      operands.push_back(program_.shape(x).empty() ? rebuild_.of(x) : written(x, order, depth - 1));
    return rebuild_.emit(program_.op(v), operands);
  }

  /// With the axes of the result in this order, or in its own if that is empty.
  Value einsum(Value v, const Integers& order) {
    EinsumSpec spec = EinsumSpec::parse(program_.attributes(v).text("spec"));
    if (!order.empty()) spec.result = permuted(spec.result, order);
    for (std::size_t i = 0; i < spec.operands.size(); ++i)
      if (const Integers& own = order_[program_.operands(v)[i].index]; !own.empty())
        spec.operands[i] = permuted(spec.operands[i], own);
    return rebuild_.emit(ops::op_einsum, rebuild_.operands_of(v), {{"spec", spec.print()}});
  }

  /// Over one axis of a value that was written in another order.
  Value sum(Value v) {
    const std::int64_t axis = program_.attributes(v).integers("axes")[0];
    const Integers& own = order_[operand(v).index];
    Integers kept, back;
    for (std::int64_t outer : own)
      if (outer != axis) kept.push_back(outer - (outer > axis));
    for (std::size_t k = 0; k < kept.size(); ++k)
      back.push_back(std::ranges::find(kept, static_cast<std::int64_t>(k)) - kept.begin());
    const Value result = rebuild_.emit(ops::op_reduce_sum, {rebuild_.of(operand(v))},
                                       {{"axes", Integers{std::ranges::find(own, axis) - own.begin()}}});
    return std::ranges::is_sorted(back) ? result
                                        : rebuild_.emit(ops::op_transpose, {result}, {{"permutation", back}});
  }

  Value scatter(Value v, const Integers& order, int depth) {
    Attributes attributes = program_.attributes(v);
    attributes.set("to", print_coordinates(permuted(parse_coordinates(attributes.text("to")), order)));
    attributes.set("shape", permuted(attributes.integers("shape"), order));
    std::vector<Value> operands;
    for (Value x : program_.operands(v)) operands.push_back(rebuild_.of(x));
    if (attributes.has("base")) operands[1] = written(program_.operands(v)[1], order, depth - 1);
    return rebuild_.emit(ops::op_scatter, operands, attributes);
  }

  const Program& program_;
  Rebuild rebuild_;
  std::vector<std::vector<Value>> users_;  ///< that outputs need; an output is one of its own
  std::vector<Integers> order_;            ///< of the axes of what was written in another order
};

}  // namespace

Program transposes(const Program& program) { return Transposer(program).run(); }

}  // namespace loipe::passes
