// SPDX-License-Identifier: Apache-2.0
#include "driver/public_report.h"

#include "attention/planner/planner.h"

namespace loipe {

namespace {

MeasuredError measured(const attention::approximate::Measured& m) { return {m.value, m.low, m.high}; }

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

}  // namespace

AttentionHeadReport public_report(const attention::approximate::HeadReport& r) {
  constexpr const char* kColumnAudits[] = {"none", "exact columns", "columns with approximate normalisers",
                                           "pairs"};
  const auto method = [](double code) { return static_cast<AttentionMethod>(whole(code)); };
  return {.forward = method(r.method),
          .backward = method(r.backward_method),
          .coefficients = static_cast<AttentionCoefficients>(whole(r.coefficients)),
          .degree = static_cast<int>(whole(r.degree)),
          .features = whole(r.features),
          .rank = whole(r.rank),
          .near = whole(r.near),
          .clusters = whole(r.clusters),
          .exact_keys = whole(r.exact_keys),
          .sampled = whole(r.sampled),
          .logit_spread = r.logit_spread,
          .logit_bound = r.logit_bound,
          .largest_logit = r.largest_logit,
          .effective_rank = r.effective_rank,
          .predicted_error = r.predicted_error,
          .predicted_flops = r.work,
          .predicted_bytes = r.memory,
          .reason = attention::planner::text_of(static_cast<attention::planner::Reason>(whole(r.reason))),
          .escalations = static_cast<int>(whole(r.escalations)),
          .guarded_rows = whole(r.guarded_rows),
          .o = measured(r.o),
          .dq = measured(r.dq),
          .dk = measured(r.dk),
          .dv = measured(r.dv),
          .column_audit = kColumnAudits[whole(r.column_audit)],
          .bound_o = r.bound_o,
          .bound_dq = r.bound_dq,
          .bound_dk = r.bound_dk,
          .bound_dv = r.bound_dv};
}

}  // namespace loipe
