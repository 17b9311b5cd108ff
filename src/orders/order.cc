// SPDX-License-Identifier: Apache-2.0
#include "orders/order.h"

#include <algorithm>
#include <map>

#include "base/rng.h"
#include "base/text.h"
#include "orders/moves.h"

namespace loipe {

namespace {

/// Per vertex number (from 1): whether it is an output that no node uses.
std::vector<bool> pure_outputs(const Program& program, const std::vector<int>& numbers) {
  std::vector<bool> is_used(program.size(), false);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    for (Value operand : program.operands(Value{i})) is_used[operand.index] = true;
  std::vector<bool> result(program.size() + 1, false);
  for (Value output : program.outputs())
    if (numbers[output.index] > 0 && !is_used[output.index])
      result[static_cast<std::size_t>(numbers[output.index])] = true;
  return result;
}

int vertex_count(const std::vector<int>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

std::string list_some(const std::vector<int>& vertices) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(vertices.size(), kShown); ++i)
    parts.push_back(std::to_string(vertices[i]));
  if (vertices.size() > kShown) parts.push_back("... (" + std::to_string(vertices.size()) + " in all)");
  return join(parts, ", ");
}

}  // namespace

std::vector<int> eliminable_vertices(const Program& program) {
  const std::vector<int> numbers = program.vertex_numbers();
  const std::vector<bool> pure = pure_outputs(program, numbers);
  std::vector<int> result;
  const int count = vertex_count(numbers);
  for (int v = 1; v <= count; ++v)
    if (!pure[static_cast<std::size_t>(v)]) result.push_back(v);
  return result;
}

void validate_order(const Program& program, const EliminationOrder& order) {
  if (order.has_moves()) return validate_moves(program, order);
  const std::vector<int> numbers = program.vertex_numbers();
  const std::vector<bool> pure = pure_outputs(program, numbers);
  const int count = vertex_count(numbers);
  std::vector<int> seen(static_cast<std::size_t>(count) + 1, 0);
  std::vector<int> unknown, outputs, repeated, missing;
  for (int v : order.vertices) {
    if (v < 1 || v > count) unknown.push_back(v);
    else if (pure[static_cast<std::size_t>(v)]) outputs.push_back(v);
    else if (++seen[static_cast<std::size_t>(v)] == 2) repeated.push_back(v);
  }
  for (int v = 1; v <= count; ++v)
    if (!pure[static_cast<std::size_t>(v)] && seen[static_cast<std::size_t>(v)] == 0) missing.push_back(v);
  std::vector<std::string> faults;
  if (!missing.empty()) faults.push_back("missing: " + list_some(missing));
  if (!repeated.empty()) faults.push_back("repeated: " + list_some(repeated));
  if (!unknown.empty()) faults.push_back("unknown: " + list_some(unknown));
  if (!outputs.empty()) faults.push_back("outputs, which are never eliminated: " + list_some(outputs));
  if (!faults.empty())
    throw UserError("order '" + order.name + "' does not fit program '" + program.name() +
                    "', whose eliminable vertices are those of 1.." + std::to_string(count) +
                    " that are not outputs; " + join(faults, "; "));
}

EliminationOrder forward_order(const Program& program) { return {"forward", eliminable_vertices(program)}; }

EliminationOrder reverse_order(const Program& program) {
  EliminationOrder order{"reverse", eliminable_vertices(program)};
  std::reverse(order.vertices.begin(), order.vertices.end());
  return order;
}

EliminationOrder random_order(const Program& program, std::uint64_t seed) {
  EliminationOrder order{"random-" + std::to_string(seed), eliminable_vertices(program)};
  Rng rng(seed);
  for (std::size_t i = order.vertices.size(); i > 1; --i)
    std::swap(order.vertices[i - 1],
              order.vertices[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(i)))]);
  return order;
}

}  // namespace loipe
