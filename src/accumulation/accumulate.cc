// SPDX-License-Identifier: Apache-2.0
#include "accumulation/accumulate.h"

#include "base/check.h"
#include "graph/linearize.h"
#include "jacobian/arithmetic.h"
#include "jacobian/batch.h"

namespace loipe {

namespace {

DType working_dtype(const Program& program) {
  for (Value output : program.outputs())
    if (program.type(output).dtype == DType::f64) return DType::f64;
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (program.type(Value{i}).dtype == DType::f64) return DType::f64;
  return DType::f32;
}

/// Vertex of each published number; pruned vertices have none.
std::vector<std::int64_t> vertices_by_number(const CompGraph& graph) {
  std::vector<std::int64_t> result;
  for (VertexId v = 0; v < graph.vertex_count(); ++v) {
    const auto number = static_cast<std::size_t>(graph.vertex(v).number);
    if (number >= result.size()) result.resize(number + 1, -1);
    if (number > 0) result[number] = v;
  }
  return result;
}

void eliminate_all(Elimination& elimination, const std::vector<int>& order) {
  const std::vector<std::int64_t> by_number = vertices_by_number(elimination.graph());
  auto eliminate = [&](VertexId v) {
    if (elimination.graph().vertex(v).kind == VertexKind::intermediate) elimination.eliminate_vertex(v);
  };
  for (int number : order)
    if (static_cast<std::size_t>(number) < by_number.size() &&
        by_number[static_cast<std::size_t>(number)] >= 0)
      eliminate(static_cast<VertexId>(by_number[static_cast<std::size_t>(number)]));
  // What normalisation added is outside the numbering: an output that is given twice.
  for (VertexId v : elimination.graph().intermediates())
    if (!elimination.graph().in_edges(v).empty() || !elimination.graph().out_edges(v).empty()) eliminate(v);
}

/// The dense blocks of the accumulated graph, batch axes taken together.
class BlockWriter {
 public:
  BlockWriter(Recorder& recorder, const Program& program, const AccumulationRequest& request)
      : recorder_(recorder), program_(program), request_(request) {}

  LocalJacobian block(const CompGraph& graph, std::size_t output, std::size_t k) const {
    LocalJacobian jacobian;
    if (auto edge = graph.find_edge(graph.independents()[k], graph.dependents()[output]))
      jacobian = graph.edge(*edge).jacobian;
    if (!is_batched(k)) return jacobian;
    return batch_diagonal(recorder_, jacobian, out_shape(output), program_.shape(argument(k)));
  }

  Value dense(const LocalJacobian& block, std::size_t output, std::size_t k) const {
    Shape in = program_.shape(argument(k));
    if (is_batched(k)) in.erase(in.begin());
    return materialize(recorder_, block, out_shape(output), in,
                       program_.type(program_.outputs()[output]).dtype);
  }

 private:
  bool is_batched(std::size_t k) const {
    return !request_.batched.empty() && request_.batched[request_.wrt[k]];
  }
  Value argument(std::size_t k) const { return program_.arguments()[request_.wrt[k]]; }
  const Shape& out_shape(std::size_t output) const { return program_.shape(program_.outputs()[output]); }

  Recorder& recorder_;
  const Program& program_;
  const AccumulationRequest& request_;
};

}  // namespace

OpCost count_operations(const Program& program, std::size_t first, std::size_t last) {
  OpCost total;
  std::vector<const TensorType*> operands;
  for (std::size_t i = first; i < last; ++i) {
    const Value node{static_cast<std::uint32_t>(i)};
    if (!is_floating(program.type(node).dtype)) continue;
    operands.clear();
    for (Value operand : program.operands(node)) operands.push_back(&program.type(operand));
    total += program.op(node).cost.value({operands, program.attributes(node), program.type(node)});
  }
  return total;
}

OpCost count_operations(const Program& program) { return count_operations(program, 0, program.size()); }

Accumulation accumulate(const Program& program, const AccumulationRequest& request) {
  validate_order(program, request.order);
  for (std::size_t i = 0; i < program.outputs().size(); ++i)
    if (const TensorType& type = program.type(program.outputs()[i]); !is_floating(type.dtype))
      throw UserError(
          "output " + std::to_string(i) + " of program '" + program.name() + "' is " + to_string(type) +
          ": only floating outputs can be differentiated; leave it out, or convert it to f32 or f64");
  Accumulation result;
  Builder builder(program);
  Recorder recorder(builder, working_dtype(program));
  result.primal_nodes = builder.program().size();
  result.graph = linearize(recorder, program, request.wrt);
  result.partial_nodes = builder.program().size() - result.primal_nodes;
  const std::size_t first = builder.program().size();
  const ActualCost before = recorder.cost();
  Elimination elimination(recorder, program, result.graph);
  eliminate_all(elimination, request.order.vertices);
  result.cost = {recorder.cost().multiplications - before.multiplications,
                 recorder.cost().additions - before.additions};
  result.counted = count_operations(builder.program(), first, builder.program().size());
  result.statistics = elimination.statistics();

  std::vector<Value> outputs(program.outputs().begin(), program.outputs().end());
  const BlockWriter writer(recorder, program, request);
  for (std::size_t i = 0; i < program.outputs().size(); ++i)
    for (std::size_t k = 0; k < request.wrt.size(); ++k) {
      result.blocks.push_back(writer.block(elimination.graph(), i, k));
      if (request.writes_blocks) outputs.push_back(writer.dense(result.blocks.back(), i, k));
    }
  result.program = builder.finish(std::move(outputs));
  return result;
}

}  // namespace loipe
