// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/counts.h"
#include "driver/objective.h"
#include "driver/time_model.h"
#include "orders/search/search.h"

namespace loipe {

/// A search for a subject's order, and all counts of what it found.
struct SubjectSearch {
  search::SearchResult result;
  OrderCounts counts;
  std::string graph_hash;  ///< of the program's text, so that an order file can be told from another's
};

struct SubjectSearchOptions {
  search::SearchOptions search = {};
  Objective objective = Objective::published;
  PublishedGraph graph = PublishedGraph::reference;
  search::MoveSet moves = search::MoveSet::vertex;
  TimeConstants constants = {};  ///< for the objective time
  /// What searches instead of search::search_order for the published objective, and its name
  /// for the order file: an agent and its hash.
  std::function<search::SearchResult(const published::Graph&, const search::SearchOptions&)> player = {};
  std::string player_hash = {};
};

/// The published objective is Unsupported where the published rule does not apply.
SubjectSearch search_subject(const Subject& subject, const Program& program,
                             const SubjectSearchOptions& options);

/// The objectives that are counted on recorded programs. Models of them are searched first: the
/// clean published rule with free +1 and -1, and without. What they find, and the orders that
/// have names, are counted, and the best are improved by annealing in counted moves (by the methods
/// automatic and anneal; others end with the models).
search::SearchResult search_counted(const Subject& subject, const Program& program,
                                    const SubjectSearchOptions& options);

/// The orders that have names, but for `best`: search is not to be better than what it found before,
/// and its figures are to be its own.
std::vector<search::KnownOrder> known_orders(const Subject& subject, const Program& program);

/// The file that `--order FILE` reads, with what is needed to make it again.
std::string order_file_text(const Subject& subject, const Program& program, const SubjectSearch& found,
                            const SubjectSearchOptions& options);

/// Cost over time, one curve per method, as SVG; the orders that have names, published ones among
/// them, are lines, unless they cost more than twice what was found.
std::string search_plot(const Subject& subject, const Program& program, const SubjectSearch& found,
                        const SubjectSearchOptions& options);

}  // namespace loipe
