// SPDX-License-Identifier: Apache-2.0
#include "attention/approximate/choice.h"

#include <algorithm>
#include <array>

#include "attention/planner/planner.h"

namespace loipe::attention::approximate {

namespace {

bool is_linear(const HeadReport& report) {
  return report.method == static_cast<double>(Method::almost_linear);
}

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

bool is_alike(const HeadReport& a, const HeadReport& b) {
  return a.method == b.method && a.backward_method == b.backward_method && a.degree == b.degree &&
         a.rank == b.rank && a.near == b.near && a.clusters == b.clusters && a.exact_keys == b.exact_keys;
}

/// The largest of what `workspace` needs for any approximation that the planner may choose.
template <class E, class Workspace>
std::size_t largest_linear(const Problem<E>& problem, const Settings& settings, Workspace workspace) {
  std::size_t largest = 0;
  planner::for_each_polynomial(problem.shape, problem.mask.is_causal, settings,
                               [&](int degree, std::int64_t rank) {
                                 almost_linear::Approximation approximation;
                                 approximation.degree = degree;
                                 approximation.window = settings.near;
                                 approximation.rank = rank;
                                 const double anything = 0;  // the size does not depend on what is there
                                 approximation.coefficients = &anything;
                                 if (rank > 0) approximation.basis = &anything;
                                 if (settings.has_paper_gradient)
                                   approximation.gradient = almost_linear::Gradient::paper;
                                 largest = std::max(largest, workspace(approximation));
                               });
  return largest;
}

template <class E, class Workspace>
std::size_t largest_clustered(const Problem<E>& problem, const Settings& settings, Workspace workspace) {
  std::size_t largest = 0;
  if (settings.method != Method::clustered && settings.method != Method::automatic) return 0;
  std::array<clustered::Budget, planner::kMostBudgets> all;
  const int count = planner::budgets(problem.shape, problem.mask.is_causal, settings, all);
  for (int i = 0; i < count; ++i) largest = std::max(largest, workspace(all[static_cast<std::size_t>(i)]));
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

template <class E>
void Choices<E>::measure(const Parallel& parallel) {
  const auto heads = static_cast<std::size_t>(problem_.shape.kv_heads);
  statistics::statistics(problem_, {}, {heads_, heads}, bases_, parallel, workspace_);
}

template <class E>
void Choices<E>::choose(const Parallel& parallel, std::span<HeadReport> reports) {
  measure(parallel);
  const bool has_exact_mask = problem_.mask.window > 0 || problem_.mask.bias;
  for (std::size_t head = 0; head < reports.size(); ++head)
    reports[head] = planner::plan_head(problem_.shape, problem_.mask.is_causal, has_exact_mask, heads_[head],
                                       settings_[head]);
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
    planner::coefficients(reports[static_cast<std::size_t>(head)],
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
  const Settings& settings = settings_[static_cast<std::size_t>(range.first)];
  almost_linear::Approximation result;
  result.degree = static_cast<int>(whole(report.degree));
  result.coefficients = coefficients_ + range.first * (polynomial::kMaxDegree + 1);
  result.window = whole(report.near);
  result.rank = whole(report.rank);
  if (result.rank > 0)
    result.basis = columns_ + range.first * problem_.shape.head_size * problem_.shape.head_size;
  if (settings.has_paper_gradient) result.gradient = almost_linear::Gradient::paper;
  return result;
}

template <class E>
clustered::Budget Choices<E>::budget(const HeadReport& report) {
  return {.clusters = whole(report.clusters),
          .exact_keys = whole(report.exact_keys),
          .window = whole(report.near)};
}

template <class E>
std::size_t Choices<E>::largest_forward_workspace(const Problem<E>& problem,
                                                  std::span<const Settings> settings, int threads) {
  std::size_t largest = attention::forward_workspace(problem, threads);
  for (const Settings& s : settings) {
    largest = std::max(largest, largest_linear(problem, s, [&](const auto& approximation) {
                         return almost_linear::forward_workspace(problem, approximation, threads);
                       }));
    if (s.is_forward_clustered)
      largest = std::max(largest, largest_clustered(problem, s, [&](const clustered::Budget& budget) {
                           return clustered::forward_workspace(problem, budget, threads);
                         }));
  }
  return largest;
}

template <class E>
std::size_t Choices<E>::largest_vjp_workspace(const Problem<E>& problem, std::span<const Settings> settings,
                                              int threads) {
  std::size_t largest = attention::vjp_workspace(problem, threads);
  for (const Settings& s : settings) {
    largest = std::max(largest, largest_linear(problem, s, [&](const auto& approximation) {
                         return almost_linear::vjp_workspace(problem, approximation, threads);
                       }));
    largest = std::max(largest, largest_clustered(problem, s, [&](const clustered::Budget& budget) {
                         return clustered::vjp_workspace(problem, budget, threads);
                       }));
  }
  return largest;
}

template class Choices<float>;
template class Choices<double>;

}  // namespace loipe::attention::approximate
