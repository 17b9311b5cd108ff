// SPDX-License-Identifier: Apache-2.0
#include "graph/linearize.h"

#include "base/check.h"
#include "ir/op_def.h"
#include "jacobian/arithmetic.h"
#include "jacobian/rules.h"

namespace loipe {

namespace {

/// What is active: influenced by an independent, through floating values, and
/// influencing an output.
std::vector<bool> active_nodes(const Program& program, const std::vector<std::size_t>& wrt) {
  std::vector<bool> varied(program.size(), false), useful(program.size(), false);
  for (std::size_t position : wrt) varied[program.arguments()[position].index] = true;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (!is_floating(program.type(Value{i}).dtype)) continue;
    for (Value operand : program.operands(Value{i})) varied[i] = varied[i] || varied[operand.index];
  }
  for (Value output : program.outputs()) useful[output.index] = true;
  for (auto i = static_cast<std::uint32_t>(program.size()); i-- > 0;)
    if (useful[i])
      for (Value operand : program.operands(Value{i})) useful[operand.index] = true;
  for (std::size_t i = 0; i < varied.size(); ++i) varied[i] = varied[i] && useful[i];
  return varied;
}

LocalJacobian local_jacobian(Recorder& recorder, const Program& program, Value node, std::size_t operand) {
  const OpDef& op = program.op(node);
  const Differentiation& differentiation = op.jacobian;
  if (!differentiation.rule)
    throw Unsupported("op '" + std::string(op.name.value) +
                      "' has no local Jacobian: " + std::string(differentiation.why_not));
  JacobianContext context{recorder.builder(), node, operand};
  return differentiation.rule(context);
}

LocalJacobian identity(Builder& builder, const Shape& shape) {
  TermDraft draft;
  const std::vector<Label> labels = draft.labels(shape);
  return draft.out(labels).in(labels).finish(builder);
}

/// Builds the graph vertex by vertex in program order.
class Linearizer {
 public:
  Linearizer(Recorder& recorder, const Program& program, const std::vector<std::size_t>& wrt)
      : recorder_(recorder),
        program_(program),
        active_(active_nodes(program, wrt)),
        vertex_of_(program.size(), kNone) {
    for (std::size_t position : wrt) add_independent(position);
  }

  CompGraph run() && {
    const std::vector<int> numbers = program_.vertex_numbers();
    const std::vector<bool> is_pure_output = pure_outputs();
    for (std::uint32_t i = 0; i < program_.size(); ++i) {
      if (!active_[i] || vertex_of_[i] != kNone || numbers[i] == 0) continue;
      const VertexKind kind = is_pure_output[i] ? VertexKind::dependent : VertexKind::intermediate;
      vertex_of_[i] = graph_.add_vertex({Value{i}, numbers[i], kind});
      add_in_edges(Value{i});
    }
    for (Value output : program_.outputs()) add_dependent(output, is_pure_output[output.index]);
    return std::move(graph_);
  }

 private:
  static constexpr VertexId kNone = ~VertexId{0};

  void add_independent(std::size_t position) {
    const Value argument = program_.arguments()[position];
    if (!is_floating(program_.type(argument).dtype))
      throw UserError("argument '" + program_.argument_name(position) + "' is " +
                      to_string(program_.type(argument)) +
                      ": only floating arguments can be differentiated by");
    if (vertex_of_[argument.index] != kNone)
      throw UserError("argument '" + program_.argument_name(position) +
                      "' is named twice to differentiate by");
    vertex_of_[argument.index] = graph_.add_vertex({argument, 0, VertexKind::independent});
  }

  /// Outputs that no node uses and that are given once: they are their own dependents.
  std::vector<bool> pure_outputs() const {
    std::vector<int> outputs(program_.size(), 0);
    for (Value output : program_.outputs()) ++outputs[output.index];
    for (std::uint32_t i = 0; i < program_.size(); ++i)
      for (Value operand : program_.operands(Value{i})) outputs[operand.index] = 0;
    for (Value argument : program_.arguments()) outputs[argument.index] = 0;
    std::vector<bool> result(program_.size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = outputs[i] == 1;
    return result;
  }

  void add_in_edges(Value node) {
    const auto operands = program_.operands(node);
    const Shape& out = program_.shape(node);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Value operand = operands[k];
      if (!active_[operand.index]) continue;
      LocalJacobian jacobian = local_jacobian(recorder_, program_, node, k);
      if (jacobian.is_zero()) continue;
      const VertexId source = vertex_of_[operand.index], destination = vertex_of_[node.index];
      require(source != kNone, "an active operand has no vertex");
      // An operand that stands twice (x*x) has two derivatives: one edge, their sum.
      if (auto edge = graph_.find_edge(source, destination))
        add(recorder_, graph_.jacobian(*edge), jacobian, out, program_.shape(operand));
      else graph_.add_edge(source, destination, std::move(jacobian));
    }
  }

  void add_dependent(Value output, bool is_pure) {
    if (is_pure && vertex_of_[output.index] != kNone) return graph_.add_dependent(vertex_of_[output.index]);
    const VertexId dependent = graph_.add_vertex({output, 0, VertexKind::dependent});
    graph_.add_dependent(dependent);
    if (!active_[output.index] || vertex_of_[output.index] == kNone) return;
    graph_.add_edge(vertex_of_[output.index], dependent,
                    identity(recorder_.builder(), program_.shape(output)));
  }

  Recorder& recorder_;
  const Program& program_;
  std::vector<bool> active_;
  std::vector<VertexId> vertex_of_;
  CompGraph graph_;
};

}  // namespace

CompGraph linearize(Recorder& recorder, const Program& program, const std::vector<std::size_t>& wrt) {
  for (std::size_t position : wrt)
    if (position >= program.arguments().size())
      throw UserError("argument position " + std::to_string(position) + " to differentiate by: program '" +
                      program.name() + "' has " + std::to_string(program.arguments().size()) + " arguments");
  return Linearizer(recorder, program, wrt).run();
}

}  // namespace loipe
