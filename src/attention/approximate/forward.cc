// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "attention/approximate/approximate.h"
#include "attention/approximate/audit.h"
#include "attention/approximate/choice.h"

namespace loipe::attention::approximate {

namespace {

template <class E>
class Forward {
 public:
  Forward(const Problem<E>& problem, std::span<const Settings> settings, int threads, Arena& arena)
      : problem_(problem), settings_(settings), choices_(problem, settings, threads, arena) {
    audit_ = Audit<E>(problem, threads, arena);
    const std::size_t bytes = Choices<E>::largest_forward_workspace(problem, settings, threads);
    kernels_ = {arena.take<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
    own_reports_ = arena.take<HeadReport>(problem.shape.kv_heads);
  }

  /// Budgets that a pilot in the backward pass will choose stay open.
  void plan(const Parallel& parallel, std::span<HeadReport> reports) {
    choices_.choose(parallel, reports);
    for (std::size_t head = 0; head < reports.size(); ++head)
      if (settings_[head].exact_keys == 0) reports[head].exact_keys = 0;
  }

  void run(Results<E> results, const Parallel& parallel) {
    if (results.reports.empty())
      results.reports = {own_reports_, static_cast<std::size_t>(problem_.shape.kv_heads)};
    choices_.choose(parallel, results.reports);
    for (HeadRange range{0, 0}; range.first < problem_.shape.kv_heads; range.first += range.count) {
      range = Choices<E>::alike(results.reports, range.first);
      run_alike(results, range, parallel);
    }
    for (std::int64_t head = 0; head < problem_.shape.kv_heads; ++head) audit(results, head, parallel);
  }

 private:
  static HeadReport& report_of(const Results<E>& results, std::int64_t head) {
    return results.reports[static_cast<std::size_t>(head)];
  }
  const Settings& settings_of(std::int64_t head) const { return settings_[static_cast<std::size_t>(head)]; }

  /// Heads with one plan, by its kernels.
  void run_alike(const Results<E>& results, HeadRange range, const Parallel& parallel) {
    const Problem<E> heads = some_heads(problem_, range);
    const std::int64_t first = range.first * problem_.shape.readers();
    const ForwardResults<E> exact{from_head(results.o, first), from_head(results.lse, first),
                                  from_head(results.statistics, first)};
    switch (static_cast<Method>(static_cast<int>(report_of(results, range.first).method))) {
      case Method::almost_linear: return run_linear(results, heads, exact, range, parallel);
      case Method::clustered:
        return clustered::forward<E>(heads, Choices<E>::budget(report_of(results, range.first)), exact,
                                     parallel, kernels_);
      default: return attention::forward<E>(heads, exact, parallel, kernels_);
    }
  }

  /// The denominators take the place of the statistics.
  void run_linear(const Results<E>& results, const Problem<E>& heads, const ForwardResults<E>& exact,
                  HeadRange range, const Parallel& parallel) {
    std::array<std::int64_t, kSomeHeads> guarded{};
    for (HeadRange some{0, 0}; some.first < range.count; some.first += some.count) {
      some.count = std::min<std::int64_t>(range.count - some.first, kSomeHeads);
      const HeadRange own{range.first + some.first, some.count};
      const std::int64_t first = some.first * problem_.shape.readers();
      almost_linear::forward<E>(some_heads(heads, some), choices_.approximation(results.reports, own),
                                {from_head(exact.o, first), from_head(exact.lse, first),
                                 from_head(exact.statistics, first), guarded.data()},
                                parallel, kernels_);
      for (std::int64_t i = 0; i < some.count; ++i)
        report_of(results, own.first + i).guarded_rows =
            static_cast<double>(guarded[static_cast<std::size_t>(i)]);
    }
  }

  /// Method automatic goes on until sampled rows of O meet its tolerance; others are measured in the backward
  /// pass.
  void audit(const Results<E>& results, std::int64_t head, const Parallel& parallel) {
    HeadReport& report = report_of(results, head);
    const Settings& settings = settings_of(head);
    while (settings.method == Method::automatic && report.method != static_cast<double>(Method::exact)) {
      const HeadRange one{head, 1};
      audit_.forward(some_heads(problem_, one), from_head(results.o, head * problem_.shape.readers()), report,
                     parallel);
      // What is done cannot be taken back in the backward pass: the upper end of the interval counts.
      if (report.o.high <= settings.tolerance && report.guarded_rows == 0) return;
      const double error = report.guarded_rows > 0 ? 1 : report.o.value;
      report = choices_.escalated(report, head, error);
      choices_.adopt(results.reports, head);
      run_alike(results, one, parallel);
    }
  }

  static constexpr std::int64_t kSomeHeads = 64;

  const Problem<E>& problem_;
  std::span<const Settings> settings_;
  Choices<E> choices_;
  Audit<E> audit_;
  std::span<std::byte> kernels_;
  HeadReport* own_reports_;
};

}  // namespace

template <class E>
std::size_t forward_workspace(const Problem<E>& problem, std::span<const Settings> settings, int threads) {
  Arena arena;
  Forward<E>(problem, settings, threads, arena);
  return arena.used();
}

template <class E>
void forward(const Problem<E>& problem, std::span<const Settings> settings, const Results<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace) {
  Arena arena(workspace);
  Forward<E>(problem, settings, parallel.threads, arena).run(results, parallel);
}

template <class E>
void plan(const Problem<E>& problem, std::span<const Settings> settings, std::span<HeadReport> reports,
          const Parallel& parallel, std::span<std::byte> workspace) {
  Arena arena(workspace);
  Forward<E>(problem, settings, parallel.threads, arena).plan(parallel, reports);
}

#define LOIPE_INSTANTIATE(E)                                                                                 \
  template std::size_t forward_workspace<E>(const Problem<E>&, std::span<const Settings>, int);              \
  template void forward<E>(const Problem<E>&, std::span<const Settings>, const Results<E>&, const Parallel&, \
                           std::span<std::byte>);                                                            \
  template void plan<E>(const Problem<E>&, std::span<const Settings>, std::span<HeadReport>,                 \
                        const Parallel&, std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::approximate
