// SPDX-License-Identifier: Apache-2.0
#include "graph/seeds.h"

#include "base/check.h"

namespace loipe {

std::vector<VertexId> seed_independents(CompGraph& graph, Value t, std::vector<LocalJacobian> seeds) {
  std::vector<VertexId> seeded = graph.release_independents();
  require(seeds.size() == seeded.size(), "there is one seed for each independent");
  const VertexId source = graph.add_vertex({t, 0, VertexKind::independent});
  for (std::size_t k = 0; k < seeds.size(); ++k)
    if (!seeds[k].is_zero()) graph.add_edge(source, seeded[k], std::move(seeds[k]));
  return seeded;
}

std::vector<VertexId> seed_dependents(CompGraph& graph, Value s, std::vector<LocalJacobian> seeds) {
  std::vector<VertexId> seeded = graph.release_dependents();
  require(seeds.size() == seeded.size(), "there is one seed for each dependent");
  const VertexId destination = graph.add_vertex({s, 0, VertexKind::dependent});
  graph.add_dependent(destination);
  for (std::size_t i = 0; i < seeds.size(); ++i)
    if (!seeds[i].is_zero()) graph.add_edge(seeded[i], destination, std::move(seeds[i]));
  return seeded;
}

}  // namespace loipe
