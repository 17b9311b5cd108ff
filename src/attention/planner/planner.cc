// SPDX-License-Identifier: Apache-2.0
#include "attention/planner/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attention/planner/cost.h"
#include "attention/polynomial/polynomial.h"

namespace loipe::attention::planner {

namespace {

using statistics::HeadStatistics;

/// Up to here the weighted fit is positive where logits are (alt-grad 6.4).
constexpr double kLargestHermiteSpread = 0.75;

HeadPlan exact_plan(const HeadShape& shape, Reason reason) {
  HeadPlan plan;
  plan.reason = reason;
  plan.flops = exact_flops(shape);
  plan.bytes = exact_bytes(shape);
  return plan;
}

Reason reason_of(Refusal refusal) {
  if (refusal == Refusal::mask) return Reason::mask;
  return refusal == Refusal::not_finite ? Reason::not_finite : Reason::refused;
}

HeadPlan refused(HeadPlan plan, Refusal refusal) {
  plan.refusal = refusal;
  plan.reason = reason_of(refusal);
  return plan;
}

bool is_finite(const HeadStatistics& s) {
  return std::isfinite(s.logit_spread) && std::isfinite(s.logit_bound) && std::isfinite(s.value_norm);
}

/// What any method but the exact one needs.
Refusal general_refusal(const HeadShape& shape, const HeadStatistics& s, const Request& r) {
  if (!(r.tolerance > 0)) return Refusal::tolerance;
  if (shape.has_window || shape.has_bias) return Refusal::mask;
  if (!is_finite(s)) return Refusal::not_finite;
  return Refusal::none;
}

/// Sets kind and parameter of the polynomial, and the errors predicted for it.
PredictedError choose_coefficients(const HeadStatistics& s, const Request& r, std::int64_t dimensions,
                                   HeadPlan& plan) {
  std::array<double, polynomial::kMaxDegree + 1> memory;
  const std::span<double> a = std::span(memory).first(static_cast<std::size_t>(plan.degree) + 1);
  plan.coefficients = r.coefficients;
  plan.parameter = 0;
  if (plan.coefficients == Coefficients::automatic) {
    plan.coefficients = Coefficients::taylor;
    if (s.logit_spread <= kLargestHermiteSpread) {
      polynomial::hermite(s.logit_spread, a);
      if (plan.degree % 2 != 0 || polynomial::is_positive(a, s.logit_bound))
        plan.coefficients = Coefficients::hermite;
    }
  }
  if (plan.coefficients == Coefficients::hermite) plan.parameter = s.logit_spread;
  // Where three spreads lie, as far as the fit can be had: least error at the largest logit alone, where next
  // to nothing lies, costs a factor 2 elsewhere.
  if (plan.coefficients == Coefficients::minimax)
    plan.parameter = std::min({3 * s.logit_spread, s.logit_bound, polynomial::kLargestBound});
  write_coefficients(plan, a);
  return predict_error(a, s.logit_spread, dimensions, r.gradient);
}

/// A polynomial of given degree; its predicted error may be above the tolerance.
HeadPlan polynomial_plan(const HeadShape& shape, const HeadStatistics& s, const Request& r, int degree) {
  HeadPlan plan;
  plan.method = Method::almost_linear;
  plan.degree = degree;
  plan.gradient = r.gradient;
  plan.window = r.window;
  plan.has_odd_degree = degree % 2 != 0;
  // What projection leaves out acts as noise of the logits, and so as a relative error of the weights.
  const double lost = s.logit_spread * std::sqrt(s.lost_energy);
  const bool is_projected = s.rank > 0 && s.rank < shape.head_size && lost < r.tolerance / 4;
  plan.rank = is_projected ? s.rank : 0;
  const std::int64_t size = is_projected ? s.rank : shape.head_size;
  const PredictedError error = choose_coefficients(s, r, std::max<std::int64_t>(s.rank, 1), plan);
  plan.predicted_error = std::hypot(error.gradient, is_projected ? lost : 0);
  // The paper's gradient takes monomials of one degree more.
  const bool is_paper = r.gradient == almost_linear::Gradient::paper;
  plan.features = monomials(size, degree);
  const std::int64_t used = monomials(size, degree + (is_paper ? 1 : 0));
  plan.flops = almost_linear_flops(shape, size, used, r.window);
  plan.bytes = almost_linear_bytes(shape, used);
  plan.reason = Reason::small_logits;
  if (r.memory_limit > 0 && plan.bytes > static_cast<double>(r.memory_limit))
    return refused(plan, Refusal::memory);
  return plan;
}

/// The first even degree from `degree` on that is predicted to do, or the last that fits.
HeadPlan plan_polynomial(const HeadShape& shape, const HeadStatistics& s, const Request& r, int degree) {
  if (r.degree < 0 || r.degree > polynomial::kMaxDegree) {
    HeadPlan plan;
    plan.method = Method::almost_linear;
    plan.degree = r.degree;
    return refused(plan, Refusal::degree);
  }
  if (r.degree > 0) return polynomial_plan(shape, s, r, r.degree);
  HeadPlan best = polynomial_plan(shape, s, r, degree);
  while (best.predicted_error > r.tolerance && best.degree + 2 <= polynomial::kMaxDegree) {
    const HeadPlan next = polynomial_plan(shape, s, r, best.degree + 2);
    if (next.refusal != Refusal::none) break;
    best = next;
  }
  return best;
}

/// Keys and means that a query of a head at length n sees in the mean for an error of 0.1, and how the error
/// falls with more: measured on a trained encoder (docs/theory/attention_error.md).
constexpr double kBudgetAt512 = 90, kGrowth = 0.75, kDecay = 1;

/// One query in so many is sampled: less costs as much to gather, more is better spent on keys.
constexpr std::int64_t kQueriesOfASample = 16;

double clustered_error(double keys, double budget) {
  if (budget >= keys) return 0;
  return 0.1 * std::pow(kBudgetAt512 * std::pow(keys / 512, kGrowth) / budget, kDecay);
}

HeadPlan clustered_plan(const HeadShape& shape, const Request& r, std::int64_t clusters,
                        std::int64_t exact_keys) {
  HeadPlan plan;
  plan.method = Method::clustered;
  plan.clusters = clusters, plan.exact_keys = exact_keys;
  plan.window = r.window;
  plan.pairing = r.pairing;
  if (r.pairing == Pairing::exact_forward)
    plan.sampled = r.sampled != 0 ? std::min(r.sampled, shape.queries) : shape.queries / kQueriesOfASample;
  const double budget = static_cast<double>(clusters + exact_keys + r.window);
  plan.predicted_error = clustered_error(static_cast<double>(shape.keys), budget);
  plan.flops = clustered_flops(shape, plan);
  plan.bytes = clustered_bytes(shape, plan);
  plan.reason = Reason::large_logits;
  if (clusters < 0 || exact_keys < 0 || clusters > shape.keys) return refused(plan, Refusal::clusters);
  return plan;
}

HeadPlan plan_clusters(const HeadShape& shape, const Request& r, double tolerance) {
  const double keys = static_cast<double>(shape.keys);
  const double budget = kBudgetAt512 * std::pow(keys / 512, kGrowth) * std::pow(0.1 / tolerance, 1 / kDecay);
  const auto rounded = [&](double x) {
    return std::min(shape.keys, static_cast<std::int64_t>(std::ceil(std::clamp(x, 1.0, keys) / 16)) * 16);
  };
  // Clustering costs as much as more exact keys: beyond 2 sqrt(n) clusters, 128 at 4,096, these do more.
  const std::int64_t clusters =
      r.clusters != 0 ? r.clusters : rounded(std::min(budget / 3, 2 * std::sqrt(keys)));
  return clustered_plan(shape, r, clusters,
                        r.exact_keys != 0
                            ? r.exact_keys
                            : rounded(budget - static_cast<double>(std::min(clusters, shape.keys))));
}

HeadPlan plan_automatic(const HeadShape& shape, const HeadStatistics& s, const Request& r) {
  HeadPlan best = exact_plan(shape, Reason::no_saving);
  for (const HeadPlan& plan : {plan_polynomial(shape, s, r, 2), plan_clusters(shape, r, r.tolerance)})
    if (plan.refusal == Refusal::none && plan.predicted_error <= r.tolerance && plan.flops < best.flops)
      best = plan;
  return best;
}

}  // namespace

const char* name_of(Method method) {
  constexpr const char* kNames[] = {"exact", "auto", "almost-linear", "clustered"};
  return kNames[static_cast<std::size_t>(method)];
}

const char* name_of(Coefficients coefficients) {
  constexpr const char* kNames[] = {"auto", "taylor", "hermite", "minimax"};
  return kNames[static_cast<std::size_t>(coefficients)];
}

const char* text_of(Reason reason) {
  constexpr const char* kTexts[] = {"as asked for",
                                    "nothing is cheaper at this length and tolerance",
                                    "logits are small enough for a polynomial",
                                    "logits are too large for a polynomial",
                                    "the audit found too large an error, and more effort saves nothing",
                                    "the audit found a larger error than asked for",
                                    "a window of the mask or a bias is exact",
                                    "inputs are not finite",
                                    "what was asked for cannot be had"};
  return kTexts[static_cast<std::size_t>(reason)];
}

void write_coefficients(const HeadPlan& plan, std::span<double> coefficients) {
  switch (plan.coefficients) {
    case Coefficients::hermite: return polynomial::hermite(plan.parameter, coefficients);
    case Coefficients::minimax: return polynomial::minimax(plan.parameter, coefficients);
    case Coefficients::automatic:
    case Coefficients::taylor: return polynomial::taylor(coefficients);
  }
}

HeadPlan plan_head(const HeadShape& shape, const HeadStatistics& s, const Request& r) {
  if (r.method == Method::exact) return exact_plan(shape, Reason::asked);
  if (const Refusal refusal = general_refusal(shape, s, r); refusal != Refusal::none) {
    HeadPlan plan = exact_plan(shape, reason_of(refusal));
    // A mask is no fault of an automatic choice; a bad tolerance always is.
    if (r.method != Method::automatic || refusal == Refusal::tolerance) plan.refusal = refusal;
    return plan;
  }
  switch (r.method) {
    case Method::almost_linear: return plan_polynomial(shape, s, r, 2);
    case Method::clustered: return plan_clusters(shape, r, r.tolerance);
    case Method::automatic:
    case Method::exact: break;
  }
  return plan_automatic(shape, s, r);
}

HeadPlan escalate(const HeadPlan& plan, double measured_error, const HeadShape& shape,
                  const HeadStatistics& s, const Request& r) {
  const bool is_asked_for = r.method == plan.method;  // by name: then it may cost more than exact
  HeadPlan next = plan;
  double expected = measured_error;
  do {
    const HeadPlan last = next;
    if (plan.method == Method::almost_linear && last.degree + 2 <= polynomial::kMaxDegree)
      next = polynomial_plan(shape, s, r, last.degree + 2);
    else if (plan.method == Method::clustered)
      next = clustered_plan(shape, r, std::min(2 * last.clusters, shape.keys),
                            std::min(2 * last.exact_keys, shape.keys));
    else return exact_plan(shape, Reason::given_up);
    if (next.refusal != Refusal::none || (!is_asked_for && next.flops >= exact_flops(shape)) ||
        (next.method == Method::clustered && next.exact_keys >= shape.keys))
      return exact_plan(shape, Reason::given_up);
    // The model says by how much more effort helps, the measurement where to start from.
    expected *= next.predicted_error / std::max(last.predicted_error, 1e-300);
  } while (expected > r.tolerance);
  next.predicted_error = expected;
  next.reason = Reason::audit;
  return next;
}

}  // namespace loipe::attention::planner
