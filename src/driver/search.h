// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/counts.h"
#include "orders/search/search.h"

namespace loipe {

/// The cost that search lowers.
enum class Objective : std::uint8_t { published };

/// A search for a subject's order, and all counts of what it found.
struct SubjectSearch {
  search::SearchResult result;
  OrderCounts counts;
  std::string graph_hash;  ///< of the program's text, so that an order file can be told from another's
};

/// Unsupported where the published rule does not apply to the subject.
SubjectSearch search_subject(const Subject& subject, const Program& program,
                             const search::SearchOptions& options,
                             PublishedGraph which = PublishedGraph::reference);

/// The file that `--order FILE` reads, with what is needed to make it again.
std::string order_file_text(const Subject& subject, const SubjectSearch& found, std::uint64_t seed);

}  // namespace loipe
