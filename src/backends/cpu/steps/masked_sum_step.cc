// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/masked_sum_step.h"

#include <algorithm>
#include <array>
#include <span>

#include "backends/cpu/threads.h"
#include "base/check.h"
#include "tensor/visit.h"

namespace loipe::cpu {

namespace {

/// Index and positions of all operands while a nest is walked.
class Positions {
 public:
  static constexpr std::size_t kMaxOperands = 16;

  explicit Positions(std::span<const StridedView> views) : views_(views) { at_.fill(0); }

  std::int64_t operator[](std::size_t operand) const { return at_[operand]; }
  void move(std::size_t axis, std::int64_t steps) {
    for (std::size_t k = 0; k < views_.size(); ++k) at_[k] += views_[k].strides[axis] * steps;
  }

 private:
  std::span<const StridedView> views_;
  std::array<std::int64_t, kMaxOperands> at_;
};

template <class T>
class MaskedSumStep final : public Step {
 public:
  MaskedSumStep(std::vector<StridedView> factors, std::vector<StridedView> masks, const StridedView& out,
                MaskedResults which)
      : out_(out), which_(which), factor_count_(factors.size()), views_(std::move(factors)) {
    views_.insert(views_.end(), masks.begin(), masks.end());
    require(views_.size() <= Positions::kMaxOperands, "a masked product has too many operands");
    rank_ = views_[0].shape.size();
    kept_ = out_.shape.size();
    terms_ = element_count(std::span(views_[0].shape).subspan(kept_));
  }

  void run(const RunContext& context) const override {
    const std::int64_t results = out_.count();
    const std::int64_t work = which_ == MaskedResults::all ? std::max<std::int64_t>(terms_, 1) : 1;
    const std::int64_t per_task = std::max<std::int64_t>(8192 / work, 1);
    parallel_for(context.threads_for(results * work), (results + per_task - 1) / per_task,
                 [&](std::int64_t task, int) {
                   const std::int64_t last = std::min((task + 1) * per_task, results);
                   for (std::int64_t i = task * per_task; i < last; ++i) result(context, i);
                 });
  }

 private:
  /// A spec has at most 52 labels.
  static constexpr std::size_t kMaxRank = 52;

  /// Result number `number` of the contiguous output.
  void result(const RunContext& context, std::int64_t number) const {
    T& out = *context.at<T>(out_.buffer, out_.offset + number);
    if (which_ == MaskedResults::nan && out == out) return;
    Positions at(views_);
    for (std::size_t axis = kept_; axis-- > 0; number /= out_.shape[axis])
      at.move(axis, number % out_.shape[axis]);
    std::array<std::int64_t, kMaxRank> index{};
    T sum = 0;
    for (std::int64_t term = 0; term < terms_; ++term) {
      if (all_masks_hold(context, at)) sum += product(context, at);
      next(index, at);
    }
    out = sum;
  }

  void next(std::array<std::int64_t, kMaxRank>& index, Positions& at) const {
    for (std::size_t axis = rank_; axis-- > kept_;) {
      at.move(axis, 1);
      if (++index[axis] < views_[0].shape[axis]) return;
      at.move(axis, -index[axis]);
      index[axis] = 0;
    }
  }

  bool all_masks_hold(const RunContext& context, const Positions& at) const {
    for (std::size_t k = factor_count_; k < views_.size(); ++k)
      if (!*context.at<const bool>(views_[k].buffer, views_[k].offset + at[k])) return false;
    return true;
  }

  T product(const RunContext& context, const Positions& at) const {
    T result = 1;
    for (std::size_t k = 0; k < factor_count_; ++k)
      result *= *context.at<const T>(views_[k].buffer, views_[k].offset + at[k]);
    return result;
  }

  StridedView out_;
  MaskedResults which_;
  std::size_t factor_count_;
  std::vector<StridedView> views_;  ///< factors, then masks
  std::size_t rank_ = 0, kept_ = 0;
  std::int64_t terms_ = 0;
};

}  // namespace

std::unique_ptr<Step> make_masked_sum_step(std::vector<StridedView> factors, std::vector<StridedView> masks,
                                           const StridedView& out, MaskedResults which) {
  return visit_floating(out.dtype, [&]<class T>(T) -> std::unique_ptr<Step> {
    return std::make_unique<MaskedSumStep<T>>(std::move(factors), std::move(masks), out, which);
  });
}

}  // namespace loipe::cpu
