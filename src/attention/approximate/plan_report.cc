// SPDX-License-Identifier: Apache-2.0
#include "attention/approximate/plan_report.h"

#include <algorithm>
#include <limits>

namespace loipe::attention::approximate {

namespace {

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

}  // namespace

std::int64_t memory_of_features(const planner::HeadShape& s, const Settings& settings) {
  if (settings.memory > 0) return settings.memory;
  const std::int64_t rows = 2 * (s.readers * s.queries + s.keys) * (s.head_size + s.value_size);
  return std::max<std::int64_t>(std::int64_t{32} << 20, 2 * rows * s.element_bytes);
}

planner::Request request_of(const planner::HeadShape& shape, const Settings& s) {
  return {
      .method = s.method,
      .tolerance = s.tolerance,
      .degree = s.degree,
      .coefficients = s.coefficients,
      .window = s.near,
      .clusters = s.clusters,
      .exact_keys = s.exact_keys,
      .pairing =
          s.is_forward_clustered ? planner::Pairing::fully_approximate : planner::Pairing::exact_forward,
      .gradient = s.has_paper_gradient ? almost_linear::Gradient::paper : almost_linear::Gradient::consistent,
      .memory_limit = s.degree > 0 ? 0 : memory_of_features(shape, s)};
}

HeadReport report_of(const planner::HeadPlan& plan, const statistics::HeadStatistics& s) {
  HeadReport report;
  report.logit_spread = s.logit_spread;
  report.logit_bound = s.logit_bound;
  report.largest_logit = s.largest_logit;
  report.effective_rank = static_cast<double>(s.rank);
  report.keys = static_cast<double>(s.keys);
  report.scale = s.scale;
  report.query_norm = s.query_norm, report.key_norm = s.key_norm, report.value_norm = s.value_norm;
  report.lost_energy = s.lost_energy, report.projection_bound = s.projection_bound;
  report.query_rest = s.query_rest, report.key_rest = s.key_rest;
  const bool is_forward_exact =
      plan.method == Method::exact ||
      (plan.method == Method::clustered && plan.pairing == planner::Pairing::exact_forward);
  report.method = static_cast<double>(is_forward_exact ? Method::exact : plan.method);
  report.backward_method = static_cast<double>(plan.method);
  report.reason = static_cast<double>(plan.reason);
  report.predicted_error = plan.predicted_error;
  report.work = plan.flops;
  report.memory = plan.bytes;
  report.near = static_cast<double>(plan.window);
  report.degree = plan.degree;
  report.features = static_cast<double>(plan.features);
  report.rank = static_cast<double>(plan.rank);
  report.coefficients = static_cast<double>(plan.coefficients);
  report.parameter = plan.parameter;
  report.clusters = static_cast<double>(plan.clusters);
  report.exact_keys = static_cast<double>(plan.exact_keys);
  report.sampled = static_cast<double>(plan.sampled);
  constexpr double kVacuous = std::numeric_limits<double>::infinity();
  if (is_forward_exact) report.o = {0, 0, 0};
  else report.bound_o = kVacuous;
  if (plan.method == Method::exact) report.dq = report.dk = report.dv = {0, 0, 0};
  else report.bound_dq = report.bound_dk = report.bound_dv = kVacuous;
  return report;
}

planner::HeadPlan plan_of(const HeadReport& report) {
  planner::HeadPlan plan;
  plan.method = static_cast<Method>(whole(report.backward_method));
  plan.degree = static_cast<int>(whole(report.degree));
  plan.coefficients = static_cast<CoefficientKind>(whole(report.coefficients));
  plan.parameter = report.parameter;
  plan.clusters = whole(report.clusters), plan.exact_keys = whole(report.exact_keys);
  plan.sampled = whole(report.sampled);
  plan.predicted_error = report.predicted_error;
  return plan;
}

statistics::HeadStatistics statistics_of(const HeadReport& report) {
  return {.scale = report.scale,
          .keys = whole(report.keys),
          .logit_spread = report.logit_spread,
          .logit_bound = report.logit_bound,
          .largest_logit = report.largest_logit,
          .query_norm = report.query_norm,
          .key_norm = report.key_norm,
          .value_norm = report.value_norm,
          .rank = whole(report.effective_rank),
          .lost_energy = report.lost_energy,
          .query_rest = report.query_rest,
          .key_rest = report.key_rest,
          .projection_bound = report.projection_bound};
}

}  // namespace loipe::attention::approximate
