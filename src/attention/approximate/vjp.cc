// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "attention/approximate/approximate.h"
#include "attention/approximate/audit.h"
#include "attention/approximate/choice.h"
#include "attention/planner/planner.h"

namespace loipe::attention::approximate {

namespace {

constexpr double kExact = static_cast<double>(Method::exact);
constexpr double kClustered = static_cast<double>(Method::clustered);

template <class E>
class Backward {
 public:
  Backward(const Problem<E>& problem, std::span<const Settings> settings, int threads, Arena& arena)
      : problem_(problem), settings_(settings), choices_(problem, settings, threads, arena) {
    audit_ = Audit<E>(problem, threads, arena);
    std::size_t bytes = Choices<E>::largest_vjp_workspace(problem, settings, threads);
    for (std::size_t head = 0; head < settings.size(); ++head)
      if (head == 0 || settings[head] != settings[head - 1])
        bytes = std::max(bytes, pilot_workspace(settings[head], threads));
    kernels_ = {arena.take<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
  }

  void run(const Saved<E>& saved, const Cotangents<E>& cotangents, const InputCotangents<E>& results,
           std::span<HeadReport> reports, const Parallel& parallel) {
    std::ranges::copy(saved.reports, reports.begin());
    saved_ = &saved, cotangents_ = &cotangents, results_ = &results, parallel_ = &parallel;
    choices_.recall(parallel, reports);
    for (std::int64_t head = 0; head < problem_.shape.kv_heads; ++head) choose_budget(reports, head);
    for (HeadRange range{0, 0}; range.first < problem_.shape.kv_heads; range.first += range.count) {
      range = Choices<E>::alike(reports, range.first);
      run_alike(reports, range);
    }
    for (std::int64_t head = 0; head < problem_.shape.kv_heads; ++head) audit(reports, head);
  }

 private:
  const Settings& settings_of(std::int64_t head) const { return settings_[static_cast<std::size_t>(head)]; }
  int budgets_of(const Settings& settings, std::span<clustered::Budget> all) const {
    return planner::budgets(problem_.shape, problem_.mask.is_causal, settings, all);
  }
  std::int64_t first_reader(std::int64_t head) const { return head * problem_.shape.readers(); }

  std::size_t pilot_workspace(const Settings& settings, int threads) const {
    if (settings.method != Method::clustered && settings.method != Method::automatic) return 0;
    std::array<clustered::Budget, planner::kMostBudgets> all;
    const auto count = static_cast<std::size_t>(budgets_of(settings, all));
    if (count == 0) return 0;
    return clustered::pilot_workspace(problem_, std::span(all).first(count), {}, threads);
  }

  /// Budgets that the forward pass left open: the cheapest whose error on sampled queries meets the
  /// tolerance, less what the derivatives by keys and values may have beyond that.
  void choose_budget(std::span<HeadReport> reports, std::int64_t head) {
    HeadReport& report = reports[static_cast<std::size_t>(head)];
    if (report.backward_method != kClustered || report.exact_keys > 0) return;
    std::array<clustered::Budget, planner::kMostBudgets> all;
    std::array<double, planner::kMostBudgets> errors;
    const Settings& settings = settings_of(head);
    const auto count = static_cast<std::size_t>(budgets_of(settings, all));
    const HeadRange one{head, 1};
    clustered::pilot<E>(some_heads(problem_, one), std::span(all).first(count), {}, clustered_saved(head),
                        some_heads(*cotangents_, problem_.shape, one), std::span(errors).first(count),
                        *parallel_, kernels_);
    std::size_t chosen = 0;
    while (chosen + 1 < count && errors[chosen] > settings.tolerance) ++chosen;
    if (settings.method == Method::automatic && errors[chosen] > settings.tolerance)
      return give_up(report, planner::Reason::nothing_to_gain);
    report.exact_keys = static_cast<double>(all[chosen].exact_keys);
    report.predicted_error = errors[chosen];
    report.work = planner::clustered_work(problem_.shape, problem_.mask.is_causal, all[chosen]);
  }

  clustered::Saved<E> clustered_saved(std::int64_t head) const {
    return {from_head(saved_->o, first_reader(head)), from_head(saved_->lse, first_reader(head))};
  }

  /// Exact derivatives. Of an approximate forward pass nothing is of use to them.
  void give_up(HeadReport& report, planner::Reason reason) {
    report.backward_method = kExact;
    if (report.method == kExact) report.clusters = report.exact_keys = 0;
    report.predicted_error = 0;
    report.work = planner::exact_work(problem_.shape, problem_.mask.is_causal);
    report.reason = static_cast<double>(reason);
  }

  void run_alike(std::span<const HeadReport> reports, HeadRange range) {
    const HeadReport& report = reports[static_cast<std::size_t>(range.first)];
    const Problem<E> heads = some_heads(problem_, range);
    const Cotangents<E> cotangents = some_heads(*cotangents_, problem_.shape, range);
    const InputCotangents<E> results = some_heads(*results_, problem_.shape, range);
    const Rows<const E> o = from_head(saved_->o, first_reader(range.first)),
                        statistics = from_head(saved_->statistics, first_reader(range.first));
    switch (static_cast<Method>(static_cast<int>(report.backward_method))) {
      case Method::almost_linear:
        return almost_linear::vjp<E>(heads, choices_.approximation(reports, range), {o, statistics},
                                     cotangents, results, *parallel_, kernels_);
      case Method::clustered:
        return clustered::vjp<E>(heads, Choices<E>::budget(report), clustered_saved(range.first), cotangents,
                                 results, *parallel_, kernels_);
      default: {
        const attention::Saved<E> saved =
            report.method == kExact ? attention::Saved<E>{o, statistics} : attention::Saved<E>{};
        return attention::vjp<E>(heads, saved, cotangents, results, *parallel_, kernels_);
      }
    }
  }

  /// Where method automatic misses its tolerance, the next budget, else exact derivatives.
  void audit(std::span<HeadReport> reports, std::int64_t head) {
    HeadReport& report = reports[static_cast<std::size_t>(head)];
    const Settings& settings = settings_of(head);
    while (report.backward_method != kExact &&
           (settings.is_audited || settings.method == Method::automatic)) {
      const HeadRange one{head, 1};
      audit_.backward(some_heads(problem_, one), report, clustered_saved(head),
                      some_heads(*cotangents_, problem_.shape, one),
                      some_heads(*results_, problem_.shape, one), *parallel_);
      const double worst = std::max({report.dq.value, report.dk.value, report.dv.value});
      if (settings.method != Method::automatic || worst <= settings.tolerance) return;
      report.escalations += 1;
      if (!spend_more(report, settings)) {
        give_up(report, planner::Reason::audit_failed);
        report.dq = report.dk = report.dv = {0, 0, 0};
      }
      run_alike(reports, one);
    }
  }

  bool spend_more(HeadReport& report, const Settings& settings) const {
    if (report.backward_method != kClustered) return false;
    std::array<clustered::Budget, planner::kMostBudgets> all;
    const int count = budgets_of(settings, all);
    for (int i = 0; i < count; ++i) {
      const clustered::Budget& budget = all[static_cast<std::size_t>(i)];
      if (static_cast<double>(budget.exact_keys) <= report.exact_keys) continue;
      report.exact_keys = static_cast<double>(budget.exact_keys);
      report.work = planner::clustered_work(problem_.shape, problem_.mask.is_causal, budget);
      return true;
    }
    return false;
  }

  const Problem<E>& problem_;
  std::span<const Settings> settings_;
  Choices<E> choices_;
  Audit<E> audit_;
  std::span<std::byte> kernels_;
  const Saved<E>* saved_ = nullptr;
  const Cotangents<E>* cotangents_ = nullptr;
  const InputCotangents<E>* results_ = nullptr;
  const Parallel* parallel_ = nullptr;
};

/// A forward pass of its own, for callers without one.
template <class E>
struct OwnForward {
  E *o, *lse, *statistics;
  HeadReport* reports;
  std::span<std::byte> workspace;

  OwnForward(const Problem<E>& problem, std::span<const Settings> settings, int threads, Arena& arena) {
    const Shape& s = problem.shape;
    o = arena.take<E>(s.heads * s.queries * s.value_size);
    lse = arena.take<E>(s.heads * s.queries);
    statistics = arena.take<E>(s.heads * s.queries * kStatistics);
    reports = arena.take<HeadReport>(s.kv_heads);
    const std::size_t bytes = forward_workspace(problem, settings, threads);
    workspace = {arena.take<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
  }

  Saved<E> run(const Problem<E>& problem, std::span<const Settings> settings,
               const Parallel& parallel) const {
    const Shape& s = problem.shape;
    const Results<E> results{contiguous(o, s.queries, s.value_size),
                             contiguous(lse, s.queries, 1),
                             contiguous(statistics, s.queries, kStatistics),
                             {reports, static_cast<std::size_t>(s.kv_heads)}};
    forward(problem, settings, results, parallel, workspace);
    return {results.o, results.lse, results.statistics, results.reports};
  }
};

template <class E>
struct Plan {
  OwnForward<E> own_forward;
  HeadReport* reports;
  Backward<E> backward;

  Plan(const Problem<E>& problem, std::span<const Settings> settings, int threads, Arena& arena)
      : own_forward(problem, settings, threads, arena),
        reports(arena.take<HeadReport>(problem.shape.kv_heads)),
        backward(problem, settings, threads, arena) {}
};

}  // namespace

template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, std::span<const Settings> settings, int threads) {
  Arena arena;
  Plan<E>(problem, settings, threads, arena);
  return arena.used();
}

template <class E>
void vjp(const Problem<E>& problem, std::span<const Settings> settings, const Saved<E>& saved,
         const Cotangents<E>& cotangents, const InputCotangents<E>& results, std::span<HeadReport> reports,
         const Parallel& parallel, std::span<std::byte> workspace) {
  Arena arena(workspace);
  Plan<E> plan(problem, settings, parallel.threads, arena);
  if (reports.empty()) reports = {plan.reports, static_cast<std::size_t>(problem.shape.kv_heads)};
  const Saved<E> known = saved.reports.empty() ? plan.own_forward.run(problem, settings, parallel) : saved;
  plan.backward.run(known, cotangents, results, reports, parallel);
}

#define LOIPE_INSTANTIATE(E)                                                                                \
  template std::size_t vjp_workspace<E>(const Problem<E>&, std::span<const Settings>, int);                 \
  template void vjp<E>(const Problem<E>&, std::span<const Settings>, const Saved<E>&, const Cotangents<E>&, \
                       const InputCotangents<E>&, std::span<HeadReport>, const Parallel&,                   \
                       std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::approximate
