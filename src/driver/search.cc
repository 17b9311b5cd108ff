// SPDX-License-Identifier: Apache-2.0
#include "driver/search.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "ir/printer.h"

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

SubjectSearch search_subject(const Subject& subject, const Program& program,
                             const SubjectSearchOptions& options) {
  SubjectSearch found;
  const bool is_published = options.objective == Objective::published;
  found.result = is_published
                     ? search::search_order(published_graph(subject, program, options.graph), options.search)
                     : search_actual_cost(subject, program, options.search);
  const EliminationOrder order{"search", found.result.order};
  validate_order(program, order);
  found.counts = count_order(subject, program, order, options.graph);
  const std::int64_t counted =
      is_published ? found.counts.published.value_or(-1) : found.counts.actual_multiplications;
  require(counted == found.result.cost, "search and count disagree about an order");
  found.graph_hash = hash_of(program);
  return found;
}

std::string order_file_text(const Subject& subject, const SubjectSearch& found,
                            const SubjectSearchOptions& options) {
  nlohmann::ordered_json json;
  json["task"] = subject.name();
  json["scale"] = subject.scale();
  json["batch"] = subject.batch().value_or(1);
  json["graph"] = found.graph_hash;
  json["objective"] = options.objective == Objective::published ? "published" : "actual";
  json["cost"] = found.result.cost;
  json["method"] = found.result.method;
  json["seed"] = options.search.seed;
  json["order"] = found.result.order;
  return json.dump() + "\n";
}

}  // namespace loipe
