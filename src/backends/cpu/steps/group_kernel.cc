// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/group_kernel.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backends/cpu/steps/group_body.h"

namespace loipe::cpu {

namespace {

using kernel::Access;
using kernel::Id;
using kernel::Kernel;
using kernel::Kind;

/// Elementary operations of a task, so that a task is worth its dispatch.
constexpr std::int64_t kTileCost = 1 << 15;
/// Narrower blocks of rows are no better than gathers.
constexpr std::int64_t kFewestBlockRows = 4;
/// A line of f32.
constexpr std::int64_t kBlockRows = 16;

std::int64_t cost_of(const kernel::Node& node) {
  if (node.kind == Kind::constant) return 0;
  if (node.kind != Kind::scalar) return 1;
  constexpr std::int64_t kFunction = 16, kDivision = 4;
  if (scalar::is_function(node.op)) return kFunction;
  return node.op == scalar::Op::div || node.op == scalar::Op::sqrt ? kDivision : 1;
}

int largest_power_of_two(std::int64_t limit) {
  return static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(limit)));
}

/// Contiguous along the loop, but not along the last.
bool is_transposed(const Access& access, std::size_t loop) {
  return !access.is_written && size_of(access.dtype) >= sizeof(float) && access.strides[loop] == 1 &&
         access.strides.back() > 1;
}

class Builder {
 public:
  Builder(const MapGroup& group, int vector_bytes) : group_(group), vector_bytes_(vector_bytes) {}

  std::optional<PlacedKernel> build() {
    if (element_count(group_.space) == 0) return std::nullopt;
    if (!add_body()) return std::nullopt;
    collapse_space();
    if (group_.reduced && !place_reduced_loops()) return std::nullopt;
    choose_lanes();
    if (!group_.reduced) choose_blocks();
    choose_chunks();
    kernel::verify(kernel());
    return std::move(result_);
  }

 private:
  Kernel& kernel() { return result_.kernel; }

  Id add_access(Slot slot, bool is_written) {
    return add_access(group_.views[static_cast<std::size_t>(group_.slots[slot].view)], is_written);
  }
  Id add_access(const StridedView& view, bool is_written) {
    kernel().accesses.push_back({view.dtype, view.strides, is_written});
    result_.places.push_back({view.buffer, view.offset * static_cast<std::int64_t>(size_of(view.dtype))});
    return static_cast<Id>(kernel().accesses.size() - 1);
  }

  bool add_body() {
    GroupBody body(group_, kernel(), [this](Slot slot) { return add_access(slot, false); });
    for (Slot slot = 0; slot < group_.slots.size(); ++slot) {
      const MapGroup::SlotInfo& info = group_.slots[slot];
      if (info.view == MapGroup::kNoView || info.is_input) continue;
      if (!body.compute(slot)) return false;
      kernel().stores.push_back({add_access(slot, true), body.value(slot)});
    }
    if (group_.reduced) {
      if (!body.compute(group_.reduced->slot)) return false;
      kernel().stores.push_back(
          {add_access(group_.reduced->out, true), body.value(group_.reduced->slot), true});
    }
    for (const kernel::Node& node : kernel().body) result_.element_cost += cost_of(node);
    return !kernel().stores.empty();
  }

  void collapse_space() {
    kernel().extents = group_.space;
    std::vector<Integers*> strides;
    for (Access& access : kernel().accesses) strides.push_back(&access.strides);
    collapse(kernel().extents, strides);
    if (!kernel().extents.empty()) return;
    kernel().extents = {1};
    for (Access& access : kernel().accesses) access.strides = {access.is_written ? 1 : 0};
  }

  /// Moves the reduced loops behind all but the last. False if that is reduced itself, whose sums
  /// in memory are a tree over vectors, or if they are not worth a kernel: there
  /// are none, or an operand is read across the last loop.
  bool place_reduced_loops() {
    const Access& out = kernel().accesses[kernel().stores.back().access];
    const std::size_t last = kernel().rank() - 1;
    std::vector<std::size_t> order, reduced;
    for (std::size_t loop = 0; loop <= last; ++loop) {
      if (out.strides[loop] == 0) reduced.push_back(loop);
      else if (loop < last) order.push_back(loop);
    }
    for (const Access& access : kernel().accesses)
      if (access.strides[last] > 1) return false;
    if (reduced.empty() || reduced.back() == last) return false;
    constexpr Reduction kSum = Reduction::sum, kMax = Reduction::max;
    kernel().reduction = group_.reduced->reduction == kSum   ? kernel::Reduction::sum
                         : group_.reduced->reduction == kMax ? kernel::Reduction::max
                                                             : kernel::Reduction::min;
    kernel().reduced_loops = reduced.size();
    const bool has_no_kept = order.empty();
    order.insert(order.end(), reduced.begin(), reduced.end());
    order.push_back(last);
    reorder(order);
    if (has_no_kept) add_single_loop();
    return true;
  }

  void reorder(const std::vector<std::size_t>& order) {
    const auto reordered = [&](const Integers& list) {
      Integers result;
      for (std::size_t loop : order) result.push_back(list[loop]);
      return result;
    };
    kernel().extents = reordered(kernel().extents);
    for (Access& access : kernel().accesses) access.strides = reordered(access.strides);
  }

  /// For the tiles, when no other loop is kept but the last.
  void add_single_loop() {
    kernel().extents.insert(kernel().extents.begin(), 1);
    for (Access& access : kernel().accesses) access.strides.insert(access.strides.begin(), 0);
  }

  /// One register of the widest dtype that is computed on.
  void choose_lanes() {
    std::size_t widest = 1;
    for (const kernel::Node& node : kernel().body)
      if (node.kind != Kind::constant) widest = std::max(widest, size_of(node.dtype));
    const std::int64_t most = vector_bytes_ / static_cast<int>(std::max<std::size_t>(widest, sizeof(float)));
    kernel().lanes = largest_power_of_two(std::min(most, kernel().extents.back()));
    kernel().vectors = best_vectors();
  }

  /// A step of the loop costs about as much as a few instructions on a vector; more
  /// vectors in a step overlap more and make longer code. Reductions need several for
  /// sums that do not wait for each other.
  int best_vectors() const {
    constexpr std::int64_t kStepCost = 4, kLongestStep = 64;
    const std::int64_t extent = result_.kernel.extents.back(), cost = result_.element_cost;
    int best = 1;
    std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
    for (int vectors = 1; vectors <= 4 && vectors * result_.kernel.lanes <= extent; ++vectors) {
      const std::int64_t step = std::int64_t{vectors} * result_.kernel.lanes;
      const std::int64_t total = (extent + step - 1) / step * (vectors * cost + kStepCost);
      if (vectors > 1 && vectors * cost > kLongestStep) break;
      if (total < best_cost) best = vectors, best_cost = total;
    }
    return best;
  }

  /// How many operands a block over this loop and the last one would transpose.
  std::int64_t transposed_by(std::size_t loop) const {
    return std::ranges::count_if(result_.kernel.accesses,
                                 [loop](const Access& access) { return is_transposed(access, loop); });
  }

  void choose_blocks() {
    const std::size_t rank = kernel().rank();
    std::size_t best = rank;
    std::int64_t most = 0;
    for (std::size_t loop = rank - 1; loop-- > 0;)
      if (const std::int64_t count = transposed_by(loop); count > most) best = loop, most = count;
    if (best == rank) return;
    const std::int64_t rows = std::min(kBlockRows, kernel().extents[best]);
    if (rows < kFewestBlockRows) return;
    move_before_last(best);
    kernel().block_rows = static_cast<int>(rows);
    for (Access& access : kernel().accesses) access.is_transposed = is_transposed(access, rank - 2);
  }

  void move_before_last(std::size_t loop) {
    const auto move = [loop](Integers& list) {
      std::rotate(list.begin() + static_cast<std::ptrdiff_t>(loop),
                  list.begin() + static_cast<std::ptrdiff_t>(loop) + 1, list.end() - 1);
    };
    move(kernel().extents);
    for (Access& access : kernel().accesses) move(access.strides);
  }

  /// Chunks of the innermost loop that has enough work for a tile together with those
  /// inside it. The chunks of the loops that vectors or blocks run over are whole ones
  /// of these but for the last.
  void choose_chunks() {
    const std::size_t rank = kernel().rank();
    std::size_t loop = kernel().block_rows > 0 ? rank - 2 : std::min(rank, kernel().first_reduced()) - 1;
    std::int64_t inner = result_.element_cost;
    for (std::size_t k = loop + 1; k < rank; ++k) inner *= kernel().extents[k];
    while (loop > 0 && inner * kernel().extents[loop] < kTileCost) inner *= kernel().extents[loop--];
    const std::int64_t extent = kernel().extents[loop];
    const std::int64_t unit = loop + 1 == rank                              ? kernel().step()
                              : loop + 2 == rank && kernel().block_rows > 0 ? kernel().block_rows
                                                                            : 1;
    const std::int64_t wanted = (kTileCost + inner - 1) / inner;
    kernel().chunked = loop;
    kernel().chunk = std::min(extent, (wanted + unit - 1) / unit * unit);
  }

  const MapGroup& group_;
  int vector_bytes_;
  PlacedKernel result_;
};

}  // namespace

std::optional<PlacedKernel> kernel_of(const MapGroup& group, int vector_bytes) {
  return Builder(group, vector_bytes).build();
}

}  // namespace loipe::cpu
