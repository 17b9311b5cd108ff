// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "attention/almost_linear/almost_linear.h"
#include "attention/approximate/heads.h"
#include "attention/approximate/report.h"
#include "attention/approximate/settings.h"
#include "attention/clustered/clustered.h"
#include "attention/exact/arena.h"
#include "attention/planner/planner.h"
#include "attention/polynomial/polynomial.h"
#include "attention/statistics/statistics.h"

// What to do for each head of keys, and the kernels' parameters for it. The choice is what the head's report
// says, so that the backward pass need not choose again.

namespace loipe::attention::approximate {

/// The budgets among which a pilot chooses where the settings name none: those around the planned one, the
/// cheapest first. One, where the settings name it.
struct Budgets {
  static constexpr int kMost = 10;
  std::array<clustered::Budget, kMost> list;
  std::size_t count = 0;
  std::span<const clustered::Budget> all() const { return std::span(list).first(count); }
};

/// Parameters of all heads, as arrays that the kernels take.
template <class E>
class Choices {
 public:
  /// Counts with an empty arena.
  Choices(const Problem<E>& problem, std::span<const Settings> settings, int threads, Arena& arena);

  /// Statistics of all heads, and reports with the choice for each.
  void choose(const Parallel& parallel, std::span<HeadReport> reports);
  /// The parameters alone, for reports that were chosen before. Statistics again, where a head has a basis.
  void recall(const Parallel& parallel, std::span<const HeadReport> reports);
  /// The plan after one that missed its tolerance by this error in the forward pass.
  HeadReport escalated(const HeadReport& missed, std::int64_t head, double error) const;
  /// The parameters of one head whose report has another choice now, as a range of one head.
  void adopt(std::span<const HeadReport> reports, std::int64_t head) { set_parameters(reports, {head, 1}); }

  /// The longest range of heads from `first` on whose reports say the same.
  static HeadRange alike(std::span<const HeadReport> reports, std::int64_t first);
  /// Of a range of heads that are alike, almost linear ones.
  almost_linear::Approximation approximation(std::span<const HeadReport> reports, HeadRange range) const;
  static clustered::Budget budget(const HeadReport& report);
  static Budgets budgets(const Problem<E>& problem, const Settings& settings);

  /// Of what any choice may lead to.
  static std::size_t largest_forward_workspace(const Problem<E>& problem, std::span<const Settings> settings,
                                               int threads);
  static std::size_t largest_vjp_workspace(const Problem<E>& problem, std::span<const Settings> settings,
                                           int threads);

  const statistics::HeadStatistics& of_head(std::int64_t head) const { return heads_[head]; }

 private:
  void measure(const Parallel& parallel);
  void set_parameters(std::span<const HeadReport> reports);
  void set_parameters(std::span<const HeadReport> reports, HeadRange range);

  const Problem<E>& problem_;
  std::span<const Settings> settings_;
  statistics::HeadStatistics* heads_;
  double *bases_, *columns_,
      *coefficients_;  ///< [kv_heads][d][d], [kv_heads][d][rank], [kv_heads][degree + 1]
  std::span<std::byte> workspace_;
};

}  // namespace loipe::attention::approximate
