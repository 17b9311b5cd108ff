// SPDX-License-Identifier: Apache-2.0
#include "accumulation/accumulate.h"

#include <map>

#include "accumulation/seeding.h"
#include "base/check.h"
#include "base/text.h"
#include "graph/linearize.h"
#include "jacobian/arithmetic.h"
#include "jacobian/batch.h"
#include "jacobian/transpose.h"

namespace loipe {

namespace {

DType working_dtype(const Program& program) {
  for (Value output : program.outputs())
    if (program.type(output).dtype == DType::f64) return DType::f64;
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (program.type(Value{i}).dtype == DType::f64) return DType::f64;
  return DType::f32;
}

/// The vertices that orders name; pruned ones are absent.
class NamedVertices {
 public:
  NamedVertices(const CompGraph& graph, const Program& program) {
    for (VertexId v = 0; v < graph.vertex_count(); ++v) {
      const Vertex& vertex = graph.vertex(v);
      // Arguments come first, and before the copies that outputs make of them.
      if (vertex.number == 0) arguments_.try_emplace(vertex.value.index, v);
      const auto number = static_cast<std::size_t>(vertex.number);
      if (number >= by_number_.size()) by_number_.resize(number + 1);
      if (number > 0) by_number_[number] = v;
    }
    for (Value argument : program.arguments()) values_.push_back(argument.index);
  }

  std::optional<VertexId> of(int node) const {
    if (node > 0) {
      const auto number = static_cast<std::size_t>(node);
      return number < by_number_.size() ? by_number_[number] : std::nullopt;
    }
    const auto found = arguments_.find(values_[static_cast<std::size_t>(-node)]);
    return found == arguments_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::vector<std::optional<VertexId>> by_number_;
  std::map<std::uint32_t, VertexId> arguments_;  ///< by value
  std::vector<std::uint32_t> values_;            ///< of the arguments
};

bool is_between_edges(const CompGraph& graph, VertexId v) {
  return !graph.in_edges(v).empty() && !graph.out_edges(v).empty();
}

/// Moves whose vertices are pruned, or whose edge is zero here, have nothing to do.
void play_move(Elimination& elimination, const NamedVertices& vertices, const EliminationMove& move) {
  const auto first = vertices.of(move.first);
  const auto second = move.kind == EliminationMove::Kind::vertex ? first : vertices.of(move.second);
  if (!first || !second) return;
  switch (move.kind) {
    case EliminationMove::Kind::vertex: return elimination.eliminate_vertex(*first);
    case EliminationMove::Kind::front: return elimination.eliminate_front(*first, *second);
    case EliminationMove::Kind::back: return elimination.eliminate_back(*first, *second);
  }
}

/// Of those that orders eliminate: an output that is given twice is not among them.
void check_nothing_is_left(const CompGraph& graph, const NamedVertices& vertices, const Program& program,
                           const EliminationOrder& order) {
  std::vector<std::string> left;
  for (int number : eliminable_vertices(program))
    if (const auto v = vertices.of(number); v && is_between_edges(graph, *v))
      left.push_back(std::to_string(number));
  if (!left.empty())
    throw UserError("order '" + order.name + "' leaves vertices with edges in and out: " + join(left, ", ") +
                    "; expected moves that eliminate them, such as [\"vertex\", " + left.front() + "]");
}

void eliminate_all(Elimination& elimination, const Program& program, const EliminationOrder& order,
                   const std::vector<VertexId>& first) {
  const NamedVertices vertices(elimination.graph(), program);
  auto eliminate = [&](VertexId v) {
    if (elimination.graph().vertex(v).kind == VertexKind::intermediate) elimination.eliminate_vertex(v);
  };
  for (VertexId v : first) eliminate(v);
  for (int number : order.vertices)
    if (const auto vertex = vertices.of(number)) eliminate(*vertex);
  for (const EliminationMove& move : order.moves) play_move(elimination, vertices, move);
  // Seeds take the place of arguments, whose edges moves may have named.
  if (order.has_moves() && first.empty())
    check_nothing_is_left(elimination.graph(), vertices, program, order);
  // What is outside the numbering: an output that is given twice, what seeds hang on.
  for (VertexId v : elimination.graph().intermediates())
    if (!elimination.graph().in_edges(v).empty() || !elimination.graph().out_edges(v).empty()) eliminate(v);
}

/// The blocks of the accumulated graph: batch axes taken together, directions in front.
class BlockWriter {
 public:
  BlockWriter(Recorder& recorder, const Program& program, const AccumulationRequest& request)
      : recorder_(recorder), program_(program), request_(request) {}

  /// A block and the shapes of its sides.
  struct Block {
    LocalJacobian jacobian;
    Shape out, in;
  };

  Block block(const CompGraph& graph, std::size_t i, std::size_t k) const {
    if (!request_.is_hessian) return own_block(graph, i, k);
    const std::size_t a = i % request_.wrt.size();
    return k < a ? mirrored(own_block(graph, i - a + k, a), k) : own_block(graph, i, k);
  }

  Value dense(const Block& given, std::size_t i, std::size_t k) const {
    const Value whole = materialize(recorder_, given.jacobian, given.out, given.in, block_dtype(i, k));
    return request_.is_gradient ? recorder_.reshape(whole, given.in) : whole;
  }

 private:
  Block own_block(const CompGraph& graph, std::size_t i, std::size_t k) const {
    const VertexId output = graph.dependents()[i], input = graph.independents()[k];
    Block result{{}, shape(graph, output), shape(graph, input)};
    if (auto edge = graph.find_edge(input, output))
      result.jacobian =
          explicit_terms(recorder_, graph.edge(*edge).jacobian, result.out, result.in, recorder_.dtype());
    if (is_batched(k)) {
      result.jacobian = batch_diagonal(recorder_, result.jacobian, result.out, result.in);
      result.in.erase(result.in.begin());
    }
    if (request_.tangents && !request_.cotangents) {
      result.jacobian = transposed(recorder_, result.jacobian, result.out, result.in);
      std::swap(result.out, result.in);
    }
    return result;
  }

  /// d2y/(dx_k dx_a), shape y + x_k by x_a, as d2y/(dx_a dx_k).
  Block mirrored(const Block& given, std::size_t k) const {
    const auto kept = given.out.size() - program_.shape(program_.arguments()[request_.wrt[k]]).size();
    const auto middle = given.out.begin() + static_cast<std::ptrdiff_t>(kept);
    Block result{transposed(recorder_, given.jacobian, given.out, given.in, kept),
                 {given.out.begin(), middle},
                 {middle, given.out.end()}};
    result.out.insert(result.out.end(), given.in.begin(), given.in.end());
    return result;
  }

  bool is_batched(std::size_t k) const {
    return !request_.batched.empty() && request_.batched[request_.wrt[k]];
  }
  const Shape& shape(const CompGraph& graph, VertexId v) const {
    return recorder_.builder().shape(graph.vertex(v).value);
  }
  /// That of the output, or of the argument where outputs are summed up.
  DType block_dtype(std::size_t i, std::size_t k) const {
    if (!request_.cotangents) return program_.type(program_.outputs()[i]).dtype;
    if (request_.tangents) return recorder_.dtype();
    return program_.type(program_.arguments()[request_.wrt[k]]).dtype;
  }

  Recorder& recorder_;
  const Program& program_;
  const AccumulationRequest& request_;
};

void check_request(const Program& program, const AccumulationRequest& request) {
  validate_order(program, request.order);
  require(request.batched.empty() || (!request.tangents && !request.cotangents),
          "products with a Jacobian know no batch axis of the program");
  for (std::size_t i = 0; i < program.outputs().size(); ++i)
    if (const TensorType& type = program.type(program.outputs()[i]); !is_floating(type.dtype))
      throw UserError(
          "output " + std::to_string(i) + " of program '" + program.name() + "' is " + to_string(type) +
          ": only floating outputs can be differentiated; leave it out, or convert it to f32 or f64");
}

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
  check_request(program, request);
  Accumulation result;
  Builder builder(program);
  Recorder recorder(builder, working_dtype(program));
  result.primal_nodes = builder.program().size();
  result.graph = linearize(recorder, program, request.wrt);
  result.partial_nodes = builder.program().size() - result.primal_nodes;
  const std::vector<VertexId> seeded = add_seeds(recorder, program, request, result.graph);

  const std::size_t first = builder.program().size();
  const ActualCost before = recorder.cost();
  Elimination elimination(recorder, builder.program(), result.graph);
  eliminate_all(elimination, program, request.order, seeded);
  result.cost = {recorder.cost().multiplications - before.multiplications,
                 recorder.cost().additions - before.additions};
  result.counted = count_operations(builder.program(), first, builder.program().size());
  result.statistics = elimination.statistics();

  std::vector<Value> outputs(program.outputs().begin(), program.outputs().end());
  if (request.returned) outputs = *request.returned;
  const BlockWriter writer(recorder, program, request);
  const CompGraph& graph = elimination.graph();
  for (std::size_t i = 0; i < graph.dependents().size(); ++i)
    for (std::size_t k = 0; k < graph.independents().size(); ++k) {
      BlockWriter::Block block = writer.block(graph, i, k);
      if (request.writes_blocks) outputs.push_back(writer.dense(block, i, k));
      result.blocks.push_back(std::move(block.jacobian));
    }
  result.program = builder.finish(std::move(outputs));
  return result;
}

}  // namespace loipe
