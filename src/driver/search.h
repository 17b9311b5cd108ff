// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/counts.h"
#include "orders/search/search.h"

namespace loipe {

/// The cost that search lowers.
enum class Objective : std::uint8_t { published, actual };

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
};

/// The published objective is Unsupported where the published rule does not apply.
SubjectSearch search_subject(const Subject& subject, const Program& program,
                             const SubjectSearchOptions& options);

/// Fewest recorded multiplications. A model of them, the clean published rule with free
/// +1 and -1, is searched first; what that finds, and the named orders, are accumulated
/// and counted, and the best of them is improved by counted moves.
search::SearchResult search_actual_cost(const Subject& subject, const Program& program,
                                        const search::SearchOptions& options);

/// The file that `--order FILE` reads, with what is needed to make it again.
std::string order_file_text(const Subject& subject, const SubjectSearch& found,
                            const SubjectSearchOptions& options);

}  // namespace loipe
