// SPDX-License-Identifier: Apache-2.0
#include "attention/approximate/choice.h"

#include <algorithm>
#include <cmath>

#include "attention/approximate/plan_report.h"
#include "attention/planner/cost.h"

namespace loipe::attention::approximate {

namespace {

bool is_linear(const HeadReport& report) {
  return report.method == static_cast<double>(Method::almost_linear);
}

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

bool is_alike(const HeadReport& a, const HeadReport& b) {
  return a.method == b.method && a.backward_method == b.backward_method && a.degree == b.degree &&
         a.rank == b.rank && a.near == b.near && a.clusters == b.clusters && a.exact_keys == b.exact_keys &&
         a.sampled == b.sampled;
}

bool may_be(const Settings& settings, Method method) {
  return settings.method == method || settings.method == Method::automatic;
}

/// Runs body(degree, rank) for polynomials of which one is at least as large as that of any plan.
template <class Body>
void for_each_polynomial(const planner::HeadShape& shape, const Settings& settings, Body body) {
  const auto with_rank = [&](int degree, std::int64_t rank) {
    body(degree, rank < shape.head_size ? rank : 0);
  };
  const auto limit = static_cast<double>(memory_of_features(shape, settings));
  for (int degree = 1; degree <= polynomial::kMaxDegree; ++degree) {
    if (settings.degree > 0 ? degree != settings.degree : degree % 2 == 1) continue;
    const auto is_possible = [&](std::int64_t rank) {
      const std::int64_t features = planner::monomials(rank, degree + (settings.has_paper_gradient ? 1 : 0));
      if (settings.degree > 0) return true;
      if (settings.method == Method::automatic &&
          planner::almost_linear_flops(shape, rank, features, settings.near) >= planner::exact_flops(shape))
        return false;
      return planner::almost_linear_bytes(shape, features) <= limit || degree == 2;
    };
    std::int64_t rank = shape.head_size;
    while (rank > 0 && !is_possible(rank)) --rank;
    if (rank == 0) continue;
    with_rank(degree, rank);
    if (rank == shape.head_size && rank > 1) with_rank(degree, rank - 1);
  }
}

template <class E, class Workspace>
std::size_t largest_linear(const Problem<E>& problem, const Settings& settings, Workspace workspace) {
  std::size_t largest = 0;
  if (!may_be(settings, Method::almost_linear)) return largest;
  for_each_polynomial(head_shape(problem), settings, [&](int degree, std::int64_t rank) {
    almost_linear::Approximation approximation;
    const double anything = 0;  // the size does not depend on what is there
    approximation.degree = degree;
    approximation.coefficients = &anything;
    approximation.window = settings.near;
    approximation.rank = rank;
    if (rank > 0) approximation.basis = &anything;
    if (settings.has_paper_gradient) approximation.gradient = almost_linear::Gradient::paper;
    largest = std::max(largest, workspace(approximation));
  });
  return largest;
}

template <class E, class Workspace>
std::size_t largest_clustered(const Problem<E>& problem, const Settings& settings, Workspace workspace) {
  std::size_t largest = 0;
  if (!may_be(settings, Method::clustered)) return largest;
  const Budgets budgets = Choices<E>::budgets(problem, settings);
  for (const clustered::Budget& budget : budgets.all()) largest = std::max(largest, workspace(budget));
  return largest;
}

/// The largest over all different settings, and over how many heads may run together: fewer heads are cut
/// into more pieces.
template <class E, class Size>
std::size_t over_ranges(const Problem<E>& problem, std::span<const Settings> settings, Size size) {
  std::size_t largest = 0;
  for (std::int64_t count = 1; count <= problem.shape.kv_heads;
       count = count < problem.shape.kv_heads ? std::min(2 * count, problem.shape.kv_heads) : count + 1) {
    const Problem<E> heads = some_heads(problem, {0, count});
    for (std::size_t head = 0; head < settings.size(); ++head)
      if (head == 0 || settings[head] != settings[head - 1])
        largest = std::max(largest, size(heads, settings[head]));
  }
  return largest;
}

}  // namespace

template <class E>
Choices<E>::Choices(const Problem<E>& problem, std::span<const Settings> settings, int threads, Arena& arena)
    : problem_(problem), settings_(settings) {
  const Shape& s = problem.shape;
  heads_ = arena.take<statistics::HeadStatistics>(s.kv_heads);
  bases_ = arena.take<double>(s.kv_heads * s.head_size * s.head_size);
  columns_ = arena.take<double>(s.kv_heads * s.head_size * s.head_size);
  coefficients_ = arena.take<double>(s.kv_heads * (polynomial::kMaxDegree + 1));
  const std::size_t bytes = statistics::statistics_workspace(problem, threads);
  workspace_ = {arena.take<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
}

/// Of the logits' energy a projection may lose what keeps it below a quarter of the tolerance at spread 0.5.
template <class E>
void Choices<E>::measure(const Parallel& parallel) {
  double tolerance = 1;
  for (const Settings& settings : settings_) tolerance = std::min(tolerance, settings.tolerance);
  const statistics::Options options{.energy = 1 - std::min(1e-3, std::pow(tolerance / 2, 2))};
  const auto heads = static_cast<std::size_t>(problem_.shape.kv_heads);
  bool wants_basis = false;
  for (const Settings& settings : settings_)
    wants_basis = wants_basis || may_be(settings, Method::almost_linear);
  statistics::statistics(problem_, options, {heads_, heads}, wants_basis ? bases_ : nullptr, parallel,
                         workspace_);
}

template <class E>
void Choices<E>::choose(const Parallel& parallel, std::span<HeadReport> reports) {
  measure(parallel);
  const planner::HeadShape shape = head_shape(problem_);
  for (std::size_t head = 0; head < reports.size(); ++head) {
    planner::HeadPlan plan = planner::plan_head(shape, heads_[head], request_of(shape, settings_[head]));
    if (plan.method == settings_[head].method) plan.reason = planner::Reason::asked;
    reports[head] = report_of(plan, heads_[head]);
  }
  set_parameters(reports);
}

template <class E>
void Choices<E>::recall(const Parallel& parallel, std::span<const HeadReport> reports) {
  bool has_basis = false;
  for (const HeadReport& report : reports) has_basis = has_basis || (is_linear(report) && report.rank > 0);
  if (has_basis) measure(parallel);
  set_parameters(reports);
}

template <class E>
HeadReport Choices<E>::escalated(const HeadReport& missed, std::int64_t head, double error) const {
  const planner::HeadShape shape = head_shape(problem_);
  const Settings& settings = settings_[static_cast<std::size_t>(head)];
  HeadReport next =
      report_of(planner::escalate(plan_of(missed), error, shape, heads_[head], request_of(shape, settings)),
                heads_[head]);
  next.escalations = missed.escalations + 1;
  return next;
}

template <class E>
void Choices<E>::set_parameters(std::span<const HeadReport> reports) {
  for (HeadRange range{0, 0}; range.first < problem_.shape.kv_heads; range.first += range.count) {
    range = alike(reports, range.first);
    set_parameters(reports, range);
  }
}

/// Packed, from the place of the first head on.
template <class E>
void Choices<E>::set_parameters(std::span<const HeadReport> reports, HeadRange range) {
  const HeadReport& first = reports[static_cast<std::size_t>(range.first)];
  if (!is_linear(first)) return;
  const std::int64_t size = problem_.shape.head_size, terms = whole(first.degree) + 1,
                     rank = whole(first.rank);
  for (std::int64_t i = 0; i < range.count; ++i) {
    const std::int64_t head = range.first + i;
    planner::write_coefficients(plan_of(reports[static_cast<std::size_t>(head)]),
                                {coefficients_ + range.first * (polynomial::kMaxDegree + 1) + i * terms,
                                 static_cast<std::size_t>(terms)});
    if (rank > 0)
      statistics::copy_columns(bases_ + head * size * size, size, rank,
                               columns_ + range.first * size * size + i * size * rank);
  }
}

template <class E>
HeadRange Choices<E>::alike(std::span<const HeadReport> reports, std::int64_t first) {
  HeadRange range{first, 1};
  while (range.first + range.count < std::ssize(reports) &&
         is_alike(reports[static_cast<std::size_t>(first)],
                  reports[static_cast<std::size_t>(range.first + range.count)]))
    ++range.count;
  return range;
}

template <class E>
almost_linear::Approximation Choices<E>::approximation(std::span<const HeadReport> reports,
                                                       HeadRange range) const {
  const HeadReport& report = reports[static_cast<std::size_t>(range.first)];
  almost_linear::Approximation result;
  result.degree = static_cast<int>(whole(report.degree));
  result.coefficients = coefficients_ + range.first * (polynomial::kMaxDegree + 1);
  result.window = whole(report.near);
  result.rank = whole(report.rank);
  if (result.rank > 0)
    result.basis = columns_ + range.first * problem_.shape.head_size * problem_.shape.head_size;
  if (settings_[static_cast<std::size_t>(range.first)].has_paper_gradient)
    result.gradient = almost_linear::Gradient::paper;
  return result;
}

template <class E>
clustered::Budget Choices<E>::budget(const HeadReport& report) {
  return {.clusters = whole(report.clusters),
          .exact_keys = whole(report.exact_keys),
          .window = whole(report.near),
          // After a clustered forward pass its own choice makes the gradient that of its loss.
          .is_by_importance = report.method == static_cast<double>(Method::exact),
          .sampled = whole(report.sampled)};
}

template <class E>
Budgets Choices<E>::budgets(const Problem<E>& problem, const Settings& settings) {
  Budgets result;
  const planner::HeadShape shape = head_shape(problem);
  Settings named = settings;
  named.method = Method::clustered;
  const planner::HeadPlan plan =
      planner::plan_head(shape, {.scale = 1, .keys = shape.keys}, request_of(shape, named));
  if (plan.method != Method::clustered) return result;
  const auto add = [&](std::int64_t keys) {
    result.list[result.count++] = {.clusters = plan.clusters,
                                   .exact_keys = keys,
                                   .window = plan.window,
                                   .is_by_importance = !settings.is_forward_clustered,
                                   .sampled = plan.sampled};
  };
  if (settings.exact_keys > 0) {
    add(std::min(settings.exact_keys, shape.keys));
    return result;
  }
  // The planned budget is for a typical head: sharp ones need an eighth of it, diffuse ones four times as
  // much.
  for (double part = 0.125; result.count < Budgets::kMost; part *= 1.5) {
    const auto keys =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(plan.exact_keys) * part / 16) * 16);
    if (result.count > 0 && keys >= shape.keys) break;
    add(std::min(keys, shape.keys));
  }
  return result;
}

template <class E>
std::size_t Choices<E>::largest_forward_workspace(const Problem<E>& problem,
                                                  std::span<const Settings> settings, int threads) {
  return over_ranges(problem, settings, [&](const Problem<E>& heads, const Settings& s) {
    const std::size_t exact = attention::forward_workspace(heads, threads);
    const std::size_t linear = largest_linear(heads, s, [&](const auto& approximation) {
      return almost_linear::forward_workspace(heads, approximation, threads);
    });
    if (!s.is_forward_clustered) return std::max(exact, linear);
    return std::max({exact, linear, largest_clustered(heads, s, [&](const clustered::Budget& budget) {
                       return clustered::forward_workspace(heads, budget, threads);
                     })});
  });
}

template <class E>
std::size_t Choices<E>::largest_vjp_workspace(const Problem<E>& problem, std::span<const Settings> settings,
                                              int threads) {
  return over_ranges(problem, settings, [&](const Problem<E>& heads, const Settings& s) {
    const std::size_t exact = attention::vjp_workspace(heads, threads);
    const std::size_t linear = largest_linear(heads, s, [&](const auto& approximation) {
      return almost_linear::vjp_workspace(heads, approximation, threads);
    });
    return std::max({exact, linear, largest_clustered(heads, s, [&](const clustered::Budget& budget) {
                       return clustered::vjp_workspace(heads, budget, threads);
                     })});
  });
}

template class Choices<float>;
template class Choices<double>;

}  // namespace loipe::attention::approximate
