// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/approximate/approximate.h"
#include "attention/approximate/audit.h"
#include "attention/approximate/choice.h"
#include "attention/approximate/plan_report.h"
#include "attention/certificate/bound.h"
#include "attention/exact/packing.h"
#include "attention/planner/cost.h"

namespace loipe::attention::approximate {

namespace {

/// Frobenius, of some heads.
template <class E>
double norm(const Rows<const E>& rows, std::int64_t heads, std::int64_t count, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto x = static_cast<double>(get(rows, h, i, c));
        sum += x * x;
      }
  return std::sqrt(sum);
}

constexpr double kExact = static_cast<double>(Method::exact);
constexpr double kLinear = static_cast<double>(Method::almost_linear);
constexpr double kClustered = static_cast<double>(Method::clustered);

template <class E>
class Backward {
 public:
  Backward(const Problem<E>& problem, std::span<const Settings> settings, int threads, Arena& arena)
      : problem_(problem), settings_(settings), choices_(problem, settings, threads, arena) {
    audit_ = Audit<E>(problem, threads, arena);
    errors_ = arena.take<double>(problem.shape.kv_heads * Budgets::kMost);
    std::size_t bytes = Choices<E>::largest_vjp_workspace(problem, settings, threads);
    for (std::size_t head = 0; head < settings.size(); ++head)
      if (head == 0 || settings[head] != settings[head - 1])
        pilot_bytes_ = std::max(pilot_bytes_, pilot_workspace(settings[head]));
    // Pilots run side by side, each on one thread.
    bytes = std::max(bytes, pilot_bytes_ * static_cast<std::size_t>(threads));
    kernels_ = {arena.take<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
  }

  void run(const Saved<E>& saved, const Cotangents<E>& cotangents, const InputCotangents<E>& results,
           std::span<HeadReport> reports, const Parallel& parallel) {
    std::ranges::copy(saved.reports, reports.begin());
    saved_ = &saved, cotangents_ = &cotangents, results_ = &results, parallel_ = &parallel;
    choices_.recall(parallel, reports);
    std::fill_n(errors_, problem_.shape.kv_heads * Budgets::kMost, std::numeric_limits<double>::infinity());
    for_each(parallel, problem_.shape.kv_heads, [&](std::int64_t head, int thread) {
      choose_budget(reports, head,
                    kernels_.subspan(static_cast<std::size_t>(thread) * pilot_bytes_, pilot_bytes_));
    });
    for (HeadRange range{0, 0}; range.first < problem_.shape.kv_heads; range.first += range.count) {
      range = Choices<E>::alike(reports, range.first);
      run_alike(reports, range);
    }
    // From here on heads stand for themselves.
    for (std::int64_t head = 0; head < problem_.shape.kv_heads; ++head) choices_.adopt(reports, head);
    for (std::int64_t head = 0; head < problem_.shape.kv_heads; ++head) audit(reports, head);
    for_each(parallel, problem_.shape.kv_heads, [&](std::int64_t head, int) { bound(reports, head); });
  }

 private:
  const Settings& settings_of(std::int64_t head) const { return settings_[static_cast<std::size_t>(head)]; }
  std::int64_t first_reader(std::int64_t head) const { return head * problem_.shape.readers(); }

  static bool may_pilot(const Settings& settings) {
    return settings.exact_keys == 0 &&
           (settings.method == Method::clustered || settings.method == Method::automatic);
  }
  /// A multiple of 64.
  std::size_t pilot_workspace(const Settings& settings) const {
    const Budgets budgets = may_pilot(settings) ? Choices<E>::budgets(problem_, settings) : Budgets{};
    return budgets.count == 0
               ? 0
               : clustered::pilot_workspace(some_heads(problem_, {0, 1}), budgets.all(), {}, 1);
  }

  /// The cheapest budget whose error on sampled queries meets the tolerance.
  void choose_budget(std::span<HeadReport> reports, std::int64_t head, std::span<std::byte> workspace) const {
    HeadReport& report = reports[static_cast<std::size_t>(head)];
    const Settings& settings = settings_of(head);
    if (report.backward_method != kClustered || !may_pilot(settings)) return;
    Budgets budgets = Choices<E>::budgets(problem_, settings);
    const std::span<double> errors = errors_of(head);
    const HeadRange one{head, 1};
    clustered::pilot<E>(some_heads(problem_, one), budgets.all(), {}, clustered_saved(head),
                        some_heads(*cotangents_, problem_.shape, one), errors.first(budgets.count),
                        Parallel{}, workspace);
    std::size_t chosen = 0;
    while (chosen + 1 < budgets.count && !(errors[chosen] <= kPilotMargin * settings.tolerance)) ++chosen;
    if (settings.method == Method::automatic && !is_worth(budgets.list[chosen], errors[chosen], settings))
      return give_up(report, planner::Reason::no_saving);
    set_budget(report, budgets.list[chosen]);
    report.predicted_error = errors[chosen];
  }

  /// Of the tolerance, which the derivatives by keys and values should meet as well as the pilot's queries.
  static constexpr double kPilotMargin = 0.8;

  bool is_worth(const clustered::Budget& budget, double error, const Settings& settings) const {
    return error <= settings.tolerance && part_of(budget) < 1;
  }

  /// Time relative to the exact backward pass; pilot and audit cost about a tenth.
  double part_of(const clustered::Budget& budget) const {
    constexpr double kAround = 0.1;
    return clustered::relative_cost(problem_.shape, problem_.mask.is_causal, budget) + kAround;
  }

  void set_budget(HeadReport& report, const clustered::Budget& budget) const {
    report.exact_keys = static_cast<double>(budget.exact_keys);
    report.work = work_of(part_of(budget));
  }

  /// With a backward pass of that part of the exact one's work, which is five of seven products.
  double work_of(double part) const {
    return planner::exact_flops(head_shape(problem_)) * (2 + 5 * part) / 7;
  }

  clustered::Saved<E> clustered_saved(std::int64_t head) const {
    return {from_head(saved_->o, first_reader(head)), from_head(saved_->lse, first_reader(head))};
  }

  /// Exact derivatives. Of an approximate forward pass nothing is of use to them.
  void give_up(HeadReport& report, planner::Reason reason) const {
    report.backward_method = kExact;
    report.dq = report.dk = report.dv = {0, 0, 0};
    report.bound_dq = report.bound_dk = report.bound_dv = 0;
    if (report.method == kExact) report.clusters = report.exact_keys = 0;
    report.predicted_error = 0;
    report.work = work_of(1);
    report.memory = planner::exact_bytes(head_shape(problem_));
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

  /// Where method automatic misses its tolerance, a larger budget, else exact derivatives.
  void audit(std::span<HeadReport> reports, std::int64_t head) {
    HeadReport& report = reports[static_cast<std::size_t>(head)];
    const Settings& settings = settings_of(head);
    while (report.backward_method != kExact &&
           (settings.is_audited || settings.method == Method::automatic)) {
      measure(reports, head);
      if (settings.method != Method::automatic || worst_of(report) <= settings.tolerance) return;
      report.escalations += 1;
      if (!spend_more(report, head)) give_up(report, planner::Reason::given_up);
      run_alike(reports, {head, 1});
    }
  }

  void measure(std::span<HeadReport> reports, std::int64_t head) const {
    HeadReport& report = reports[static_cast<std::size_t>(head)];
    const HeadRange one{head, 1};
    const std::int64_t first = first_reader(head);
    const almost_linear::Approximation approximation = choices_.approximation(reports, one);
    certificate::Polynomial<E> polynomial;
    if (report.backward_method == kLinear)
      polynomial = {&approximation, from_head(saved_->statistics, first)};
    audit_.backward(some_heads(problem_, one), some_heads(*cotangents_, problem_.shape, one),
                    {from_head(saved_->o, first), some_heads(*results_, problem_.shape, one)},
                    from_head(saved_->lse, first), polynomial, report, *parallel_);
  }

  /// Rigorous bounds, which polynomials have where their logits are small.
  void bound(std::span<HeadReport> reports, std::int64_t head) const {
    HeadReport& report = reports[static_cast<std::size_t>(head)];
    if (report.backward_method != kLinear || !settings_of(head).is_audited) return;
    const HeadRange one{head, 1};
    const certificate::RigorousBound bound = certificate::rigorous_bound(
        some_heads(problem_, one), 0, statistics_of(report), choices_.approximation(reports, one),
        some_heads(*cotangents_, problem_.shape, one));
    const InputCotangents<E> results = some_heads(*results_, problem_.shape, one);
    const Shape& s = problem_.shape;
    report.bound_o = bound.o.relative(
        norm(from_head(saved_->o, first_reader(head)), s.readers(), s.queries, s.value_size));
    report.bound_dq = bound.q.relative(norm<E>(results.q, s.readers(), s.queries, s.head_size));
    report.bound_dk = bound.k.relative(norm<E>(results.k, 1, s.keys, s.head_size));
    report.bound_dv = bound.v.relative(norm<E>(results.v, 1, s.keys, s.value_size));
  }

  /// What pairs of sampled rows tell of dK and dV scatters too widely to decide by.
  static double worst_of(const HeadReport& report) {
    if (report.column_audit == static_cast<double>(ColumnAudit::pairs)) return report.dq.value;
    return std::max({report.dq.value, report.dk.value, report.dv.value});
  }

  /// The cheapest budget that should meet the tolerance, if all errors fall as the pilot's do. One more try:
  /// what would miss again would have been exact for less.
  bool spend_more(HeadReport& report, std::int64_t head) const {
    if (report.backward_method != kClustered || report.escalations > 1) return false;
    const Settings& settings = settings_of(head);
    const double wanted = report.predicted_error * kPilotMargin * settings.tolerance / worst_of(report);
    const Budgets budgets = Choices<E>::budgets(problem_, settings);
    for (std::size_t b = 0; b < budgets.count; ++b) {
      const double error = errors_of(head)[b];
      if (!(error <= wanted) || !is_worth(budgets.list[b], error, settings)) continue;
      set_budget(report, budgets.list[b]);
      report.predicted_error = error;
      report.reason = static_cast<double>(planner::Reason::audit);
      return true;
    }
    return false;
  }

  /// What the pilot of a head has found for each of its budgets; infinite where there was none.
  std::span<double> errors_of(std::int64_t head) const {
    return std::span(errors_ + head * Budgets::kMost, Budgets::kMost);
  }

  const Problem<E>& problem_;
  std::span<const Settings> settings_;
  Choices<E> choices_;
  Audit<E> audit_;
  std::span<std::byte> kernels_;
  double* errors_;  ///< [kv_heads][Budgets::kMost]
  std::size_t pilot_bytes_ = 0;
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
