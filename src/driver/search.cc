// SPDX-License-Identifier: Apache-2.0
#include "driver/search.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "driver/counted_cost.h"
#include "ir/printer.h"
#include "orders/moves.h"

namespace loipe {

namespace {

/// FNV-1a, 64 bits, of the program as text.
std::string hash_of(const Program& program) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : program_to_text(program))
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  std::string text(16, '0');
  for (std::size_t k = 16; k-- > 0; hash >>= 4) text[k] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace

std::vector<search::KnownOrder> known_orders(const Subject& subject, const Program& program) {
  std::vector<search::KnownOrder> orders;
  for (const std::string& name : subject_order_names(subject))
    if (!name.starts_with("best")) orders.push_back({name, subject_order(name, subject, program).vertices});
  return orders;
}

SubjectSearch search_subject(const Subject& subject, const Program& program,
                             const SubjectSearchOptions& options) {
  SubjectSearch found;
  if (options.objective == Objective::published) {
    search::SearchOptions search = options.search;
    search.known = known_orders(subject, program);
    const published::Graph graph = published_graph(subject, program, options.graph);
    found.result = options.player                           ? options.player(graph, search)
                   : options.moves == search::MoveSet::edge ? search::search_moves(graph, search)
                                                            : search::search_order(graph, search);
  } else {
    found.result = search_counted(subject, program, options);
  }
  const EliminationOrder order{"search", found.result.order, found.result.moves};
  validate_order(program, order);
  found.counts = count_order(subject, program, order, options.graph);
  const CountedCost cost(subject, program, options.objective, options.constants);
  const std::int64_t counted =
      options.objective == Objective::published ? found.counts.published.value_or(-1) : cost.of(order).cost;
  require(counted == found.result.cost, "search and count disagree about an order");
  found.graph_hash = hash_of(program);
  return found;
}

std::string order_file_text(const Subject& subject, const Program& program, const SubjectSearch& found,
                            const SubjectSearchOptions& options) {
  nlohmann::ordered_json json;
  json["task"] = subject.name();
  json["scale"] = subject.scale();
  json["batch"] = subject.batch().value_or(1);
  json["graph"] = found.graph_hash;
  json["objective"] = to_string(options.objective);
  json["cost"] = found.result.cost;
  json["method"] = found.result.method;
  json["seed"] = options.search.seed;
  if (!options.player_hash.empty()) json["agent"] = options.player_hash;
  if (found.result.moves.empty()) json["order"] = found.result.order;
  else json["moves"] = moves_to_json(found.result.moves, program);
  return json.dump() + "\n";
}

}  // namespace loipe
