// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/approximate/report.h"
#include "attention/approximate/settings.h"
#include "attention/planner/planner.h"
#include "attention/statistics/statistics.h"

// Between the words of the planner and those of settings and reports.

namespace loipe::attention::approximate {

/// Plans do not depend on the threads of a run.
template <class E>
planner::HeadShape head_shape(const Problem<E>& problem) {
  const Shape& s = problem.shape;
  return {.readers = s.readers(),
          .queries = s.queries,
          .keys = s.keys,
          .head_size = s.head_size,
          .value_size = s.value_size,
          .is_causal = problem.mask.is_causal,
          .has_window = problem.mask.window > 0,
          .has_bias = static_cast<bool>(problem.mask.bias),
          .element_bytes = sizeof(E),
          .threads = 1};
}

/// What features may take where nobody asked for the degree: 32 MiB, or twice the inputs and results of a
/// head.
std::int64_t memory_of_features(const planner::HeadShape& shape, const Settings& settings);

planner::Request request_of(const planner::HeadShape& shape, const Settings& settings);
HeadReport report_of(const planner::HeadPlan& plan, const statistics::HeadStatistics& statistics);

/// What was planned for a head and measured of it, from its report.
planner::HeadPlan plan_of(const HeadReport& report);
statistics::HeadStatistics statistics_of(const HeadReport& report);

}  // namespace loipe::attention::approximate
