// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/copy_step.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "backends/cpu/steps/element.h"
#include "backends/cpu/steps/nest.h"
#include "backends/cpu/steps/transpose.h"
#include "backends/cpu/threads.h"

namespace loipe::cpu {

namespace {

constexpr std::int64_t kElementsPerTask = 1 << 14;
/// Transposes without a kernel go by blocks whose lines of both sides stay in the first-level cache.
constexpr std::int64_t kTransposeBlock = 16;

/// The two inner loops: rows x columns.
struct Plane {
  std::int64_t rows = 1, columns = 1;
  std::int64_t from_row = 0, from_column = 0, to_row = 0, to_column = 0;
};

struct Assign {
  template <class E>
  static void apply(E& to, E from) {
    to = from;
  }
};
struct Add {
  template <class E>
  static void apply(E& to, E from) {
    to += from;
  }
};

template <class Operation, class E>
void move_row(const E* from, std::int64_t from_stride, E* to, std::int64_t to_stride, std::int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    if constexpr (std::is_same_v<Operation, Assign>) std::copy_n(from, count, to);
    else
      for (std::int64_t i = 0; i < count; ++i) Operation::apply(to[i], from[i]);
  } else
    for (std::int64_t i = 0; i < count; ++i) Operation::apply(to[i * to_stride], from[i * from_stride]);
}

template <class Operation, class E>
void move_plane(const Plane& p, std::int64_t first_row, std::int64_t last_row, const E* from, E* to,
                const KernelTable* kernels) {
  if constexpr (std::is_same_v<Operation, Assign> && kHasTranspose<E>)
    if (p.from_row == 1 && p.from_column != 1 && p.to_column == 1)
      return transpose(from + first_row, p.from_column, to + first_row * p.to_row, p.to_row,
                       last_row - first_row, p.columns, *kernels);
  if (p.from_row != 1 || p.from_column == 1) {
    for (std::int64_t i = first_row; i < last_row; ++i)
      move_row<Operation>(from + i * p.from_row, p.from_column, to + i * p.to_row, p.to_column, p.columns);
    return;
  }
  for (std::int64_t column = 0; column < p.columns; column += kTransposeBlock)
    for (std::int64_t row = first_row; row < last_row; row += kTransposeBlock)
      for (std::int64_t i = row; i < std::min(row + kTransposeBlock, last_row); ++i)
        move_row<Operation>(from + i * p.from_row + column * p.from_column, p.from_column,
                            to + i * p.to_row + column * p.to_column, p.to_column,
                            std::min(kTransposeBlock, p.columns - column));
}

template <class Operation, class E>
class MoveStep final : public Step {
 public:
  /// Kernels are needed to assign, not to add.
  MoveStep(const StridedView& from, const StridedView& to, const KernelTable* kernels)
      : from_(from.buffer),
        to_(to.buffer),
        from_offset_(from.offset),
        to_offset_(to.offset),
        is_parallel_(is_injective(to.shape, to.strides)),
        kernels_(kernels) {
    order_axes(from, to);
    nest_.collapse_axes();
    split_plane();
  }

  void run(const RunContext& context) const override {
    const std::int64_t outer = nest_.count();
    const std::int64_t rows_per_task =
        std::max<std::int64_t>(kElementsPerTask / std::max<std::int64_t>(plane_.columns, 1), 1);
    const std::int64_t tasks_per_plane = (plane_.rows + rows_per_task - 1) / rows_per_task;
    const std::int64_t count = outer * plane_.rows * plane_.columns;
    if (count == 0) return;
    const E* from = context.at<E>(from_, from_offset_);
    E* to = context.at<E>(to_, to_offset_);
    const int threads = is_parallel_ ? context.threads_for(count) : 1;
    if (threads == 1) return move_planes(from, to, outer);
    parallel_for(threads, outer * tasks_per_plane, [&](std::int64_t task, int) {
      const NestCursor<2> at(nest_, task / tasks_per_plane);
      const std::int64_t first = task % tasks_per_plane * rows_per_task;
      move_plane<Operation>(plane_, first, std::min(first + rows_per_task, plane_.rows), from + at.at(0),
                            to + at.at(1), kernels_);
    });
  }

 private:
  void move_planes(const E* from, E* to, std::int64_t outer) const {
    NestCursor<2> at(nest_, 0);
    for (std::int64_t i = 0; i < outer; ++i, at.next())
      move_plane<Operation>(plane_, 0, plane_.rows, from + at.at(0), to + at.at(1), kernels_);
  }

  /// The loop with the shortest steps in `to` comes last.
  void order_axes(const StridedView& from, const StridedView& to) {
    std::vector<std::size_t> axes(to.shape.size());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
    std::ranges::sort(axes, {},
                      [&](std::size_t axis) { return std::pair(-std::abs(to.strides[axis]), axis); });
    for (std::size_t axis : axes) nest_.append(to.shape[axis], {from.strides[axis], to.strides[axis]});
  }

  /// Takes two loops out of the nest: the last one, and the one along which `from`
  /// has neighbours (else the one before the last).
  void split_plane() {
    if (!nest_.extents.empty())
      take(nest_.extents.size() - 1, plane_.columns, plane_.from_column, plane_.to_column);
    if (nest_.extents.empty()) return;
    const auto neighbours = std::ranges::find(nest_.strides[0], 1);
    const std::size_t row = neighbours == nest_.strides[0].end()
                                ? nest_.extents.size() - 1
                                : static_cast<std::size_t>(neighbours - nest_.strides[0].begin());
    take(row, plane_.rows, plane_.from_row, plane_.to_row);
  }
  void take(std::size_t axis, std::int64_t& extent, std::int64_t& from_stride, std::int64_t& to_stride) {
    const auto place = static_cast<std::ptrdiff_t>(axis);
    extent = nest_.extents[axis];
    from_stride = nest_.strides[0][axis];
    to_stride = nest_.strides[1][axis];
    nest_.extents.erase(nest_.extents.begin() + place);
    for (Integers& strides : nest_.strides) strides.erase(strides.begin() + place);
  }

  BufferId from_, to_;
  std::int64_t from_offset_, to_offset_;
  bool is_parallel_;
  const KernelTable* kernels_;
  Nest<2> nest_;
  Plane plane_;
};

class ZeroStep final : public Step {
 public:
  explicit ZeroStep(const StridedView& to)
      : buffer_(to.buffer),
        offset_(static_cast<std::size_t>(to.offset) * size_of(to.dtype)),
        bytes_(TensorType{to.dtype, to.shape}.byte_size()) {}

  void run(const RunContext& context) const override {
    constexpr std::size_t kBytesPerTask = 1 << 18;
    std::byte* to = context.bases[buffer_] + offset_;
    parallel_for(context.threads_for(static_cast<std::int64_t>(bytes_ / 16)),
                 static_cast<std::int64_t>((bytes_ + kBytesPerTask - 1) / kBytesPerTask),
                 [&](std::int64_t task, int) {
                   const std::size_t begin = static_cast<std::size_t>(task) * kBytesPerTask;
                   std::memset(to + begin, 0, std::min(kBytesPerTask, bytes_ - begin));
                 });
  }

 private:
  BufferId buffer_;
  std::size_t offset_, bytes_;
};

}  // namespace

std::unique_ptr<Step> make_copy_step(const StridedView& from, const StridedView& to,
                                     const KernelTable& kernels) {
  return visit_element(size_of(to.dtype), [&]<class E>(E) -> std::unique_ptr<Step> {
    return std::make_unique<MoveStep<Assign, E>>(from, to, &kernels);
  });
}

// Integers wrap around, as unsigned ones do.
std::unique_ptr<Step> make_add_step(const StridedView& from, const StridedView& to) {
  switch (to.dtype) {
    case DType::f32: return std::make_unique<MoveStep<Add, float>>(from, to, nullptr);
    case DType::f64: return std::make_unique<MoveStep<Add, double>>(from, to, nullptr);
    case DType::i32: return std::make_unique<MoveStep<Add, std::uint32_t>>(from, to, nullptr);
    case DType::i64: return std::make_unique<MoveStep<Add, std::uint64_t>>(from, to, nullptr);
    case DType::boolean: break;
  }
  throw InternalError("addition of bool");
}

std::unique_ptr<Step> make_zero_step(const StridedView& to) { return std::make_unique<ZeroStep>(to); }

}  // namespace loipe::cpu
