// SPDX-License-Identifier: Apache-2.0
#include "accumulation/seeding.h"

#include "graph/seeds.h"
#include "jacobian/rules.h"

namespace loipe {

namespace {

enum class Side : std::uint8_t { tangents, cotangents };

/// A new argument of shape directions + that of `value`, as d(value)/dt or ds/d(value).
LocalJacobian seed(Builder& builder, const std::string& name, const TensorType& type, const Shape& directions,
                   Side side) {
  Shape shape = directions;
  shape.insert(shape.end(), type.shape.begin(), type.shape.end());
  const Value entries = builder.argument(name, {type.dtype, shape});
  TermDraft draft;
  const std::vector<Label> leading = draft.labels(directions), own = draft.labels(type.shape);
  std::vector<Label> all = leading;
  all.insert(all.end(), own.begin(), own.end());
  if (side == Side::tangents) draft.out(own).in(leading);
  else draft.out(leading).in(own);
  return draft.value(entries, all).finish(builder);
}

/// Appends to `first` what was seeded if the directions are no more than its elements.
void note_first(std::vector<VertexId>& first, const std::vector<VertexId>& seeded, const Shape& directions,
                std::int64_t elements) {
  if (element_count(directions) <= elements) first.insert(first.end(), seeded.begin(), seeded.end());
}

}  // namespace

std::string tangent_name(const std::string& argument) { return "tangent." + argument; }
std::string cotangent_name(std::size_t output) { return "cotangent." + std::to_string(output); }

std::vector<VertexId> add_seeds(Recorder& recorder, const Program& program,
                                const AccumulationRequest& request, CompGraph& graph) {
  Builder& builder = recorder.builder();
  std::vector<VertexId> first;
  if (request.tangents) {
    const Shape& directions = *request.tangents;
    std::vector<LocalJacobian> seeds;
    std::int64_t elements = 0;
    for (std::size_t position : request.wrt) {
      const TensorType& type = program.type(program.arguments()[position]);
      elements += type.element_count();
      seeds.push_back(
          seed(builder, tangent_name(program.argument_name(position)), type, directions, Side::tangents));
    }
    const Value t = recorder.full(0, directions, recorder.dtype());
    note_first(first, seed_independents(graph, t, std::move(seeds)), directions, elements);
  }
  if (request.cotangents) {
    const Shape& directions = *request.cotangents;
    std::vector<LocalJacobian> seeds;
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < program.outputs().size(); ++i) {
      const TensorType& type = program.type(program.outputs()[i]);
      elements += type.element_count();
      seeds.push_back(seed(builder, cotangent_name(i), type, directions, Side::cotangents));
    }
    const Value s = recorder.full(0, directions, recorder.dtype());
    note_first(first, seed_dependents(graph, s, std::move(seeds)), directions, elements);
  }
  return first;
}

}  // namespace loipe
