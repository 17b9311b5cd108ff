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

}  // namespace loipe::search
