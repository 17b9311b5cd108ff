// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/vector_sums.h"

#include <algorithm>

#include "backends/cpu/threads.h"
#include "tensor/visit.h"

namespace loipe::cpu {

namespace {

/// Takes the last axis out of a nest.
template <std::size_t N>
std::int64_t take_last(Nest<N>& nest) {
  const std::int64_t extent = nest.extents.back();
  nest.extents.pop_back();
  for (Integers& strides : nest.strides) strides.pop_back();
  return extent;
}

template <class T>
class LaneSumStep final : public Step {
 public:
  LaneSumStep(SumPlan plan, const KernelTable& kernels)
      : plan_(std::move(plan)), kernels_(kernels.floats<T>()) {
    a_varies_ = plan_.results.strides[1].back() != 0;
    b_varies_ = plan_.results.strides[2].back() != 0;
    lanes_ = take_last(plan_.results);
    depth_ = plan_.terms.count();
    NestCursor<2> at(plan_.terms, 0);
    for (std::int64_t k = 0; k < depth_; ++k, at.next()) {
      a_at_.push_back(at.at(0));
      b_at_.push_back(at.at(1));
    }
  }

  void run(const RunContext& context) const override {
    constexpr std::int64_t kLanesPerTask = 512;
    const std::int64_t chunks = (lanes_ + kLanesPerTask - 1) / kLanesPerTask, outer = plan_.results.count();
    // Many short rows are one task, so that a task is worth its dispatch.
    const std::int64_t rows =
        std::max<std::int64_t>(8192 / std::max<std::int64_t>(std::min(lanes_, kLanesPerTask) * depth_, 1), 1);
    const std::int64_t row_tasks = (outer + rows - 1) / rows;
    parallel_for(
        context.threads_for(outer * lanes_ * depth_ / 4), row_tasks * chunks, [&](std::int64_t task, int) {
          const std::int64_t first = task / chunks * rows, last = std::min(first + rows, outer);
          const std::int64_t lane = task % chunks * kLanesPerTask,
                             count = std::min(kLanesPerTask, lanes_ - lane);
          NestCursor<3> at(plan_.results, first);
          for (std::int64_t i = first; i < last; ++i, at.next())
            kernels_.lane_sums(
                {context.at<T>(plan_.buffers[0], plan_.offsets[0] + at.at(0) + lane), count,
                 context.at<T>(plan_.buffers[1], plan_.offsets[1] + at.at(1) + (a_varies_ ? lane : 0)),
                 context.at<T>(plan_.buffers[2], plan_.offsets[2] + at.at(2) + (b_varies_ ? lane : 0)),
                 a_at_.data(), b_at_.data(), depth_, a_varies_, b_varies_});
        });
  }

 private:
  SumPlan plan_;
  const FloatKernels<T>& kernels_;
  Integers a_at_, b_at_;  ///< of the terms
  std::int64_t lanes_ = 1, depth_ = 1;
  bool a_varies_ = false, b_varies_ = false;
};

template <class T>
class DotStep final : public Step {
 public:
  DotStep(SumPlan plan, const KernelTable& kernels) : plan_(std::move(plan)), kernels_(kernels.floats<T>()) {
    plan_.results.collapse_axes();
    plan_.terms.collapse_axes();
    if (!plan_.terms.extents.empty()) {
      is_run_ = plan_.terms.strides[0].back() == 1 && plan_.terms.strides[1].back() == 1;
      if (is_run_) run_ = take_last(plan_.terms);
    }
  }

  void run(const RunContext& context) const override {
    const std::int64_t results = plan_.results.count(), terms = plan_.terms.count() * run_;
    const std::int64_t per_task = std::max<std::int64_t>(8192 / std::max<std::int64_t>(terms, 1), 1);
    parallel_for(context.threads_for(results * terms / (is_run_ ? 4 : 1)),
                 (results + per_task - 1) / per_task, [&](std::int64_t task, int) {
                   const std::int64_t first = task * per_task, last = std::min(first + per_task, results);
                   NestCursor<3> at(plan_.results, first);
                   for (std::int64_t i = first; i < last; ++i, at.next())
                     *context.at<T>(plan_.buffers[0], plan_.offsets[0] + at.at(0)) =
                         sum(context.at<T>(plan_.buffers[1], plan_.offsets[1] + at.at(1)),
                             context.at<T>(plan_.buffers[2], plan_.offsets[2] + at.at(2)));
                 });
  }

 private:
  T sum(const T* a, const T* b) const {
    T total = 0;
    NestCursor<2> at(plan_.terms, 0);
    for (std::int64_t i = 0, count = plan_.terms.count(); i < count; ++i, at.next())
      total += is_run_ ? kernels_.dot(a + at.at(0), b + at.at(1), run_) : a[at.at(0)] * b[at.at(1)];
    return total;
  }

  SumPlan plan_;
  const FloatKernels<T>& kernels_;
  std::int64_t run_ = 1;
  bool is_run_ = false;
};

}  // namespace

std::unique_ptr<Step> make_lane_sum_step(SumPlan plan, const KernelTable& kernels) {
  return visit_floating(plan.dtype, [&]<class T>(T) -> std::unique_ptr<Step> {
    return std::make_unique<LaneSumStep<T>>(std::move(plan), kernels);
  });
}

std::unique_ptr<Step> make_dot_step(SumPlan plan, const KernelTable& kernels) {
  return visit_floating(plan.dtype, [&]<class T>(T) -> std::unique_ptr<Step> {
    return std::make_unique<DotStep<T>>(std::move(plan), kernels);
  });
}

}  // namespace loipe::cpu
