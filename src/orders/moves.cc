// SPDX-License-Identifier: Apache-2.0
#include "orders/moves.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/rng.h"
#include "base/text.h"
#include "orders/published/state.h"

namespace loipe {

namespace {

using Kind = EliminationMove::Kind;
using Json = nlohmann::json;

constexpr const char* kForms = R"(expected ["vertex", j], ["front", i, j] or ["back", j, k])";

int node_from_json(const Json& json, const Program& program, const std::string& where) {
  if (json.is_number_integer() && json >= 1 && json <= 1'000'000'000) return json.get<int>();
  if (!json.is_string())
    throw UserError(where + ": " + shortened(json.dump()) +
                    " is neither a vertex number from 1 nor the name of an argument");
  std::vector<std::string> names;
  for (std::size_t position = 0; position < program.arguments().size(); ++position) {
    names.push_back(program.argument_name(position));
    if (names.back() == json.get<std::string>()) return -static_cast<int>(position);
  }
  throw UserError(where + ": no argument is named " + shortened(json.dump()) + ": expected one of " +
                  join(names, ", "));
}

Json node_to_json(int node, const Program& program) {
  if (node > 0) return node;
  return program.argument_name(static_cast<std::size_t>(-node));
}

std::string node_to_text(int node, const Program& program) {
  return node > 0 ? "v" + std::to_string(node) : program.argument_name(static_cast<std::size_t>(-node));
}

/// The dependences of a program in the course of elimination, by node.
class Dependences {
 public:
  explicit Dependences(const Program& program) : numbers_(program.vertex_numbers()) {
    for (int vertex : eliminable_vertices(program)) eliminable_.insert(vertex);
    std::vector<int> nodes(program.size(), 1);  // constants have none
    for (std::size_t position = 0; position < program.arguments().size(); ++position)
      nodes[program.arguments()[position].index] = -static_cast<int>(position);
    for (std::uint32_t i = 0; i < program.size(); ++i) {
      if (numbers_[i] == 0) continue;
      nodes[i] = numbers_[i];
      for (Value operand : program.operands(Value{i}))
        if (numbers_[operand.index] > 0 || nodes[operand.index] <= 0)
          connect(nodes[operand.index], numbers_[i]);
    }
  }

  /// Nothing where the move can be played, else what is wrong with it.
  std::string play(const EliminationMove& move) {
    const int j = move.eliminated();
    if (!eliminable_.contains(j))
      return "vertex " + std::to_string(j) + " does not exist, is an output, or has been eliminated";
    if (move.kind == Kind::vertex) {
      const auto before = predecessors_[j], after = successors_[j];
      for (int i : before)
        for (int k : after) connect(i, k);
      for (int i : before) successors_[i].erase(j);
      for (int k : after) predecessors_[k].erase(j);
      predecessors_.erase(j);
      successors_.erase(j);
      eliminable_.erase(j);
      return "";
    }
    if (!successors_[move.first].contains(move.second)) return "there is no such edge";
    if (move.kind == Kind::front)
      for (int k : successors_[j]) connect(move.first, k);
    else
      for (int i : predecessors_[j]) connect(i, move.second);
    successors_[move.first].erase(move.second);
    predecessors_[move.second].erase(move.first);
    return "";
  }

  const std::set<int>& eliminable() const { return eliminable_; }

  /// A random move of vertex j.
  EliminationMove random_move(int j, Rng& rng) {
    const auto pick = [&](const std::set<int>& nodes) {
      return *std::next(nodes.begin(), rng.below(std::ssize(nodes)));
    };
    const double kind = rng.uniform();
    if (kind < 0.3 && !predecessors_[j].empty()) return {Kind::front, pick(predecessors_[j]), j};
    if (kind < 0.6 && !successors_[j].empty()) return {Kind::back, j, pick(successors_[j])};
    return {Kind::vertex, j};
  }

 private:
  void connect(int source, int destination) {
    successors_[source].insert(destination);
    predecessors_[destination].insert(source);
  }

  std::vector<int> numbers_;
  std::set<int> eliminable_;
  std::map<int, std::set<int>> predecessors_, successors_;
};

}  // namespace

std::vector<EliminationMove> moves_from_json(const Json& list, const Program& program) {
  if (!list.is_array() || list.empty())
    throw UserError(std::string("\"moves\" is not a list with entries: each ") + kForms);
  std::vector<EliminationMove> moves;
  for (const Json& entry : list) {
    const std::string where = "move " + std::to_string(moves.size() + 1);
    const std::string kind =
        entry.is_array() && !entry.empty() && entry[0].is_string() ? entry[0].get<std::string>() : "";
    const std::size_t size = kind == "vertex" ? 2 : kind == "front" || kind == "back" ? 3 : 0;
    if (size == 0 || entry.size() != size)
      throw UserError(where + " is " + shortened(entry.dump()) + ": " + kForms);
    EliminationMove move{kind == "vertex"  ? Kind::vertex
                         : kind == "front" ? Kind::front
                                           : Kind::back,
                         node_from_json(entry[1], program, where)};
    if (size == 3) move.second = node_from_json(entry[2], program, where);
    moves.push_back(move);
  }
  return moves;
}

nlohmann::ordered_json moves_to_json(std::span<const EliminationMove> moves, const Program& program) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EliminationMove& move : moves) {
    const Json first = node_to_json(move.first, program);
    if (move.kind == Kind::vertex) list.push_back({"vertex", first});
    else
      list.push_back(
          {move.kind == Kind::front ? "front" : "back", first, node_to_json(move.second, program)});
  }
  return list;
}

std::string to_string(std::span<const EliminationMove> moves, const Program& program) {
  std::vector<std::string> parts;
  for (const EliminationMove& move : moves) {
    const std::string first = node_to_text(move.first, program);
    if (move.kind == Kind::vertex) parts.push_back(first);
    else
      parts.push_back((move.kind == Kind::front ? "front " : "back ") + first + "->" +
                      node_to_text(move.second, program));
  }
  return join(parts, ", ");
}

EliminationOrder random_moves(const Program& program, std::uint64_t seed) {
  Dependences dependences(program);
  Rng rng(seed);
  EliminationOrder order{"random-moves-" + std::to_string(seed), {}};
  while (!dependences.eliminable().empty()) {
    const std::set<int>& vertices = dependences.eliminable();
    const int j = *std::next(vertices.begin(), rng.below(std::ssize(vertices)));
    order.moves.push_back(dependences.random_move(j, rng));
    dependences.play(order.moves.back());
  }
  return order;
}

void validate_moves(const Program& program, const EliminationOrder& order) {
  Dependences dependences(program);
  for (std::size_t k = 0; k < order.moves.size(); ++k)
    if (const std::string fault = dependences.play(order.moves[k]); !fault.empty())
      throw UserError("order '" + order.name + "' does not fit program '" + program.name() + "': move " +
                      std::to_string(k + 1) + ", " + to_string({&order.moves[k], 1}, program) + ": " + fault);
}

std::optional<std::int64_t> count_moves(const published::Graph& graph, std::span<const EliminationMove> moves,
                                        published::RuleSet rules) {
  published::State state(graph, rules);
  const auto node = [&](int name) { return name > 0 ? state.node(name) : -name; };
  std::int64_t total = 0;
  for (const EliminationMove& move : moves) {
    std::int64_t cost = 0;
    switch (move.kind) {
      case Kind::vertex: cost = state.eliminate(move.first); break;
      case Kind::front: cost = state.eliminate_front(node(move.first), move.second); break;
      case Kind::back: cost = state.eliminate_back(move.first, node(move.second)); break;
    }
    if (__builtin_add_overflow(total, cost, &total))
      throw UserError("the multiplications of this order do not fit in 64 bits");
  }
  for (int vertex = 1; vertex <= graph.vertex_count(); ++vertex)
    if (state.is_eliminable(vertex) && !state.predecessors(vertex).empty() &&
        !state.successors(vertex).empty())
      return std::nullopt;
  return total;
}

}  // namespace loipe
