// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rng.h"
#include "orders/published/graph.h"

// Small graphs for the tests of this folder.

namespace loipe::search {

/// A function of scalars, of one to three inputs and so many vertices, about half of them
/// unary; the last and perhaps others are outputs. Unary vertices are copies, which are
/// free, with that probability.
inline published::Graph random_graph(Rng& rng, int vertices, double copies = 0) {
  published::GraphSpec spec;
  const auto inputs = static_cast<int>(rng.between(1, 3));
  spec.input_shapes.assign(static_cast<std::size_t>(inputs), {});
  std::vector<bool> is_used(static_cast<std::size_t>(vertices), false);
  for (int number = 1; number <= vertices; ++number) {
    published::VertexSpec vertex{"mul", {}, {}};
    for (std::int64_t k = rng.between(1, 2); k > 0; --k) {
      const auto source =
          static_cast<int>(rng.between(std::max(0, inputs + number - 6), inputs + number - 2));
      if (source < inputs) vertex.operands.emplace_back(published::InputRef{source});
      else {
        vertex.operands.emplace_back(published::VertexRef{source - inputs + 1});
        is_used[static_cast<std::size_t>(source - inputs)] = true;
      }
    }
    if (vertex.operands.size() == 1) vertex.primitive = rng.chance(copies) ? "convert_element_type" : "exp";
    spec.vertices.push_back(vertex);
  }
  for (int number = 1; number <= vertices; ++number)
    if (number == vertices || (!is_used[static_cast<std::size_t>(number - 1)] && rng.chance(0.8)))
      spec.outputs.push_back(number);
  return published::build_graph(spec);
}

/// A function of two square matrices and so many vertices; the last is the output.
inline published::Graph random_matrix_graph(Rng& rng, int vertices) {
  published::GraphSpec spec;
  spec.input_shapes = {{3, 3}, {3, 3}};
  static const char* const kUnary[] = {"exp", "transpose", "convert_element_type", "reshape",
                                       "stop_gradient"};
  static const char* const kBinary[] = {"mul", "add", "dot_general"};
  for (int number = 1; number <= vertices; ++number) {
    published::VertexSpec vertex{"", {}, {3, 3}};
    const bool is_binary = rng.chance(0.6);
    for (int k = 0; k < (is_binary ? 2 : 1); ++k) {
      const auto source = static_cast<int>(rng.between(std::max(0, number - 3), number));
      if (source < 2) vertex.operands.emplace_back(published::InputRef{source});
      else vertex.operands.emplace_back(published::VertexRef{source - 1});
    }
    vertex.primitive = is_binary ? kBinary[rng.below(3)] : kUnary[rng.below(5)];
    if (vertex.primitive == "dot_general") {
      vertex.params.contract_lhs = {1};
      vertex.params.contract_rhs = {static_cast<int>(rng.below(2))};
    }
    spec.vertices.push_back(vertex);
  }
  spec.outputs = {vertices};
  return published::build_graph(spec);
}

}  // namespace loipe::search
