// SPDX-License-Identifier: Apache-2.0
#include "orders/published_graph.h"

#include <algorithm>

#include "ir/op_def.h"

namespace loipe::published {

namespace {

/// Who the values of a program are in the published graph.
class Operands {
 public:
  explicit Operands(const Program& program)
      : program_(program), vertices_(program.vertex_numbers()), positions_(program.size(), -1) {
    int position = 0;
    for (Value argument : program.arguments()) positions_[argument.index] = position++;
  }

  /// 0 for an argument or a constant.
  int vertex(Value value) const { return vertices_[value.index]; }

  Operand of(Value value) const {
    if (vertex(value) != 0) return VertexRef{vertex(value)};
    if (positions_[value.index] >= 0) return InputRef{positions_[value.index]};
    const Tensor& tensor = program_.attributes(value).tensor("value");
    return Literal{tensor.element_count() > 0 ? tensor.at(0) : 0, tensor.shape()};
  }

 private:
  const Program& program_;
  std::vector<int> vertices_;
  std::vector<int> positions_;
};

std::vector<int> axes_of(const Attributes& attributes, std::string_view name) {
  std::vector<int> axes;
  if (!attributes.has(name)) return axes;
  for (std::int64_t axis : attributes.integers(name)) axes.push_back(static_cast<int>(axis));
  return axes;
}

VertexSpec vertex_of(const Program& program, Value node, const Operands& operands) {
  const OpDef& op = program.op(node);
  const Attributes& attributes = program.attributes(node);
  VertexSpec vertex;
  vertex.primitive = op.jax_name.empty() ? op.name.value : op.jax_name;
  for (Value operand : program.operands(node)) vertex.operands.push_back(operands.of(operand));
  vertex.shape = program.shape(node);
  vertex.params = {.contract_lhs = axes_of(attributes, "lhs_contract"),
                   .contract_rhs = axes_of(attributes, "rhs_contract"),
                   .batch_lhs = axes_of(attributes, "lhs_batch"),
                   .batch_rhs = axes_of(attributes, "rhs_batch"),
                   .axes = axes_of(attributes, "axes")};
  return vertex;
}

}  // namespace

GraphSpec published_spec(const Program& program) {
  const std::vector<int> numbers = program.vertex_numbers();
  if (const int last = numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
      last > kMostVertices)
    throw Unsupported("the published counting rule serves at most " + std::to_string(kMostVertices) +
                      " vertices, program '" + program.name() + "' has " + std::to_string(last));
  const Operands operands(program);
  GraphSpec spec;
  for (Value argument : program.arguments()) spec.input_shapes.push_back(program.shape(argument));
  for (std::uint32_t index = 0; index < program.size(); ++index)
    if (operands.vertex(Value{index}) != 0)
      spec.vertices.push_back(vertex_of(program, Value{index}, operands));
  for (Value output : program.outputs())
    if (operands.vertex(output) != 0) spec.outputs.push_back(operands.vertex(output));
  return spec;
}

}  // namespace loipe::published
