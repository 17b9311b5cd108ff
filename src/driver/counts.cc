// SPDX-License-Identifier: Apache-2.0
#include "driver/counts.h"

#include <algorithm>

#include "orders/moves.h"
#include "orders/published/orders.h"

namespace loipe {

std::optional<std::int64_t> published_count(const Subject& subject, const Program& program,
                                            const EliminationOrder& order, PublishedGraph which) {
  // The rule counts Jacobians of all outputs: orders of fewer are no orders of its graph.
  if (!order.has_moves() && order.vertices.size() != eliminable_vertices(program).size()) return std::nullopt;
  try {
    if (order.has_moves()) return count_moves(published_graph(subject, program, which), order.moves);
    return published::count(published_graph(subject, program, which), order.vertices);
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

OrderCounts order_counts(const Subject& subject, const Program& program, const EliminationOrder& order,
                         const Compilation& compilation, PublishedGraph which) {
  const Accumulation& accumulation = compilation.accumulation;
  return {.published = published_count(subject, program, order, which),
          .actual_multiplications = accumulation.cost.multiplications,
          .actual_additions = accumulation.cost.additions,
          .folded_multiplications = compilation.folded.multiplications + compilation.folded.divisions,
          .folded_additions = compilation.folded.additions,
          .executed = compilation.executed,
          .statistics = accumulation.statistics};
}

std::vector<bool> batch_axis_arguments(const Subject& subject) {
  std::vector<bool> batched;
  if (!subject.has_batch_axis()) return batched;
  const std::vector<std::string>& names = subject.task()->batched_arguments;
  for (const std::string& argument : subject.argument_names())
    batched.push_back(std::ranges::find(names, argument) != names.end());
  return batched;
}

OrderCounts count_order(const Subject& subject, const Program& program, const EliminationOrder& order,
                        PublishedGraph which) {
  CompileOptions options;
  options.request = {floating_arguments(program), order, batch_axis_arguments(subject)};
  const Compilation compilation = accumulate_and_optimise(program, options);
  return order_counts(subject, program, order, compilation, which);
}

}  // namespace loipe
