// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/reduce_step.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/steps/nest.h"
#include "backends/cpu/threads.h"
#include "tensor/visit.h"

namespace loipe::cpu {

namespace {

constexpr std::int64_t kElementsPerTask = 1 << 13;
/// Results that are accumulated together; they stay in the first-level cache.
constexpr std::int64_t kRun = 1024;

template <class T>
T start_of(Reduction reduction) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return reduction == Reduction::sum ? T{0} : reduction == Reduction::max ? -kInfinity : kInfinity;
}

/// Which neighbours in memory go through the kernels together.
template <class T>
class ReduceStep final : public Step {
 public:
  ReduceStep(const StridedView& in, const StridedView& out, Reduction reduction, const KernelTable& kernels)
      : in_(in.buffer),
        out_(out.buffer),
        in_offset_(in.offset),
        out_offset_(out.offset),
        reduction_(reduction),
        kernels_(kernels.floats<T>()) {
    const std::size_t kept = out.shape.size();
    for (std::size_t axis = 0; axis < in.shape.size(); ++axis) {
      if (axis < kept) kept_.append(in.shape[axis], {in.strides[axis], out.strides[axis]});
      else reduced_.append(in.shape[axis], {in.strides[axis]});
    }
    kept_.collapse_axes();
    reduced_.collapse_axes();
    choose_run();
  }

  void run(const RunContext& context) const override {
    const std::int64_t results = kept_.count(), chunks = (run_kept_ + kRun - 1) / kRun;
    const std::int64_t terms = reduced_.count() * rows_ * run_reduced_;
    const std::int64_t per_task =
        std::max<std::int64_t>(kElementsPerTask / std::max<std::int64_t>(terms * run_kept_, 1), 1);
    const std::int64_t blocks = (results + per_task - 1) / per_task;
    parallel_for(
        context.threads_for(results * run_kept_ * terms), blocks * chunks, [&](std::int64_t task, int) {
          const std::int64_t first = task / chunks * per_task, last = std::min(first + per_task, results);
          for (std::int64_t i = first, some; i < last; i += some) {
            const NestCursor<2> at(kept_, i);
            some = has_result_runs_ ? neighbours_of(i, last) : 1;
            const T* const in = context.at<T>(in_, in_offset_ + at.at(0));
            T* const out = context.at<T>(out_, out_offset_ + at.at(1));
            if (has_result_runs_) reduce_rows(in, out, some, task % chunks * kRun);
            else reduce_run(in, out);
          }
        });
  }

 private:
  /// A reduced axis of stride 1 makes runs that are reduced; else a kept one of
  /// stride 1 makes runs of results.
  void choose_run() {
    if (const auto axis = std::ranges::find(reduced_.strides[0], 1); axis != reduced_.strides[0].end()) {
      const auto place = axis - reduced_.strides[0].begin();
      run_reduced_ = reduced_.extents[static_cast<std::size_t>(place)];
      reduced_.extents.erase(reduced_.extents.begin() + place);
      reduced_.strides[0].erase(axis);
    } else if (!kept_.extents.empty() && kept_.strides[0].back() == 1 && kept_.strides[1].back() == 1) {
      run_kept_ = kept_.extents.back();
      kept_.extents.pop_back();
      for (Integers& strides : kept_.strides) strides.pop_back();
      has_result_runs_ = true;
      if (reduced_.extents.empty()) return;
      rows_ = reduced_.extents.back();
      row_ = reduced_.strides[0].back();
      reduced_.extents.pop_back();
      reduced_.strides[0].pop_back();
    }
  }

  /// Results from number i on, but before `last`, that lie at even distances.
  std::int64_t neighbours_of(std::int64_t i, std::int64_t last) const {
    if (kept_.extents.empty()) return 1;
    return std::min(last - i, kept_.extents.back() - i % kept_.extents.back());
  }

  /// The runs of so many results at even distances.
  void reduce_rows(const T* in, T* out, std::int64_t count, std::int64_t chunk) const {
    const bool is_single = kept_.extents.empty();
    RowReduction<T> rows{.out = out + chunk,
                         .in = in + chunk,
                         .out_step = is_single ? 0 : kept_.strides[1].back(),
                         .in_step = is_single ? 0 : kept_.strides[0].back(),
                         .count = count,
                         .row = row_,
                         .rows = rows_,
                         .n = std::min(kRun, run_kept_ - chunk),
                         .continues = false};
    const auto reduce = kernels_.reduce_rows[static_cast<int>(reduction_)];
    const std::int64_t blocks = reduced_.count();
    if (blocks * rows_ == 0) {
      rows.rows = 0;
      return reduce(rows);
    }
    NestCursor<1> at(reduced_, 0);
    for (std::int64_t block = 0; block < blocks; ++block, at.next()) {
      rows.in = in + chunk + at.at(0);
      reduce(rows);
      rows.continues = true;
    }
  }

  void reduce_run(const T* in, T* out) const {
    const int r = static_cast<int>(reduction_);
    *out = start_of<T>(reduction_);
    const std::int64_t terms = reduced_.count();
    if (terms * run_reduced_ == 0) return;
    NestCursor<1> at(reduced_, 0);
    for (std::int64_t i = 0; i < terms; ++i, at.next()) {
      const T part = run_reduced_ == 1 ? in[at.at(0)] : kernels_.reduce[r](in + at.at(0), run_reduced_);
      kernels_.reduce_into[r](out, &part, 1);
    }
  }

  BufferId in_, out_;
  std::int64_t in_offset_, out_offset_;
  Reduction reduction_;
  const FloatKernels<T>& kernels_;
  Nest<2> kept_;     ///< over in and out
  Nest<1> reduced_;  ///< over in
  std::int64_t run_kept_ = 1, run_reduced_ = 1;
  std::int64_t rows_ = 1, row_ = 0;  ///< the innermost reduced axis, where there are runs of results
  bool has_result_runs_ = false;
};

}  // namespace

std::unique_ptr<Step> make_reduce_step(const StridedView& in, const StridedView& out, Reduction reduction,
                                       const KernelTable& kernels) {
  return visit_floating(out.dtype, [&]<class T>(T) -> std::unique_ptr<Step> {
    return std::make_unique<ReduceStep<T>>(in, out, reduction, kernels);
  });
}

}  // namespace loipe::cpu
