// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/epilogues.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/lowering/lowering.h"
#include "backends/cpu/steps/kernel_step.h"

namespace loipe::cpu {

namespace {

/// Bytes of a block of results: what stays in a first cache beside panels of the factors.
constexpr std::int64_t kBlockBytes = 32 << 10;
/// Elements of a block that are worth calling the loop for.
constexpr std::int64_t kFewestElements = 512;
constexpr std::int64_t kMostRows = 128;

/// The axes of a space that one kind of loop of a product runs over, outer ones first, and how
/// much of each belongs to a block.
struct BlockedAxes {
  std::vector<std::size_t> axes;
  Integers extents;

  std::int64_t count() const { return element_count(extents); }
};

std::int64_t largest_divisor(std::int64_t extent, std::int64_t most) {
  for (std::int64_t divisor = std::min(extent, most); divisor > 1; --divisor)
    if (extent % divisor == 0) return divisor;
  return 1;
}

/// The axes of the space whose elements, row-major, the loops run over; nothing if an axis is only partly
/// theirs. Found axes are counted.
std::optional<BlockedAxes> axes_of(const std::vector<ResultLoop>& loops, const Shape& space,
                                   std::size_t& found) {
  const Integers strides = row_major_strides(space);
  BlockedAxes result;
  for (const ResultLoop& loop : loops) {
    std::int64_t covered = 1;
    for (std::size_t axis = 0; axis < space.size(); ++axis) {
      const bool is_inside =
          strides[axis] >= loop.stride && strides[axis] * space[axis] <= loop.stride * loop.extent;
      if (space[axis] == 1 || !is_inside) continue;
      result.axes.push_back(axis);
      result.extents.push_back(space[axis]);
      covered *= space[axis];
      ++found;
    }
    if (covered != loop.extent) return std::nullopt;
  }
  return result;
}

/// Blocks of at most so many elements that are neighbours for the loops: whole inner axes, a part of
/// one, single indices of those outside.
void cut(BlockedAxes& blocked, const Shape& space, std::int64_t most) {
  for (std::size_t k = blocked.axes.size(); k-- > 0;) {
    blocked.extents[k] = largest_divisor(space[blocked.axes[k]], most);
    most = blocked.extents[k] == space[blocked.axes[k]] ? most / blocked.extents[k] : 1;
  }
}

/// How the space of a group is cut into blocks of a product's results.
struct Blocks {
  BlockedAxes batch, rows, columns;

  /// Extents of a block along the space.
  Shape shape(const Shape& space) const {
    Shape result(space.size(), 1);
    for (const BlockedAxes* part : {&rows, &columns})
      for (std::size_t k = 0; k < part->axes.size(); ++k) result[part->axes[k]] = part->extents[k];
    return result;
  }
  /// Strides of a block of results along the space: row-major rows x columns.
  Integers strides(std::size_t rank) const {
    Integers result(rank, 0);
    std::int64_t stride = 1;
    for (const BlockedAxes* part : {&columns, &rows})
      for (std::size_t k = part->axes.size(); k-- > 0; stride *= part->extents[k])
        result[part->axes[k]] = stride;
    return result;
  }
};

/// Whether what a group reduces lies in one block.
bool holds_reduced(const MapGroup& group, const Shape& block) {
  if (!group.reduced) return true;
  for (std::size_t axis = 0; axis < group.space.size(); ++axis)
    if (group.reduced->out.strides[axis] == 0 && block[axis] != group.space[axis]) return false;
  return true;
}

/// Loops that read an operand across turn blocks of it around (steps/group_kernel.cc), for which those of a
/// product are too narrow.
bool reads_across(const MapGroup& group) {
  return std::ranges::any_of(group.views, [&](const StridedView& view) {
    for (std::size_t axis = group.space.size(); axis-- > 0;)
      if (group.space[axis] > 1) return view.strides[axis] > 1;
    return false;
  });
}

/// Whether the columns of a product are what is last in the space, so that a row of a block is contiguous
/// in whatever the loop writes.
bool ends_in(const Shape& space, const BlockedAxes& columns) {
  std::size_t axis = space.size();
  while (axis-- > 0 && space[axis] == 1) continue;
  return !columns.axes.empty() && columns.axes.back() == axis;
}

/// Nothing if the loops of the product are not axes of the space, or no block suits.
std::optional<Blocks> blocks_for(const EmittedProduct& product, const MapGroup& group, std::int64_t panel) {
  std::size_t found = 0;
  std::optional<BlockedAxes> batch = axes_of(product.batch, group.space, found),
                             rows = axes_of(product.rows, group.space, found),
                             columns = axes_of(product.columns, group.space, found);
  const auto axes = std::ranges::count_if(group.space, [](std::int64_t extent) { return extent > 1; });
  if (!batch || !rows || !columns || static_cast<std::int64_t>(found) != axes ||
      !ends_in(group.space, *columns))
    return std::nullopt;
  Blocks blocks{*std::move(batch), *std::move(rows), *std::move(columns)};
  const std::int64_t most = kBlockBytes / static_cast<std::int64_t>(size_of(product.plan.dtype));
  for (std::int64_t most_rows = kMostRows; most_rows > 0; most_rows /= 2) {
    cut(blocks.rows, group.space, most_rows);
    cut(blocks.columns, group.space, most / blocks.rows.count());
    const std::int64_t width = blocks.columns.count();
    if (width != product.plan.n && width % panel != 0) continue;
    if (blocks.rows.count() * width < kFewestElements) return std::nullopt;
    if (holds_reduced(group, blocks.shape(group.space))) return blocks;
  }
  return std::nullopt;
}

/// Outer loops over blocks, and what is inside them.
class EpilogueBuilder {
 public:
  EpilogueBuilder(const MapGroup& group, const Blocks& blocks, std::size_t results)
      : blocks_(blocks), shape_(blocks.shape(group.space)), inner_(group) {
    epilogue_->results = results;
    epilogue_->rows = blocks.rows.count();
    epilogue_->columns = blocks.columns.count();
    inner_.space = shape_;
    for (std::size_t k = 0; k < group.views.size(); ++k) inner_.views[k] = add(group.views[k], k);
    if (group.reduced) inner_.reduced->out = add(group.reduced->out, group.views.size());
    inner_.views[results].strides = blocks.strides(shape_.size());
    for_each_axis([&](std::size_t axis, std::int64_t block) {
      epilogue_->blocks.push_back(group.space[axis] / block);
    });
  }

  /// The group over one block.
  const MapGroup& inner() const { return inner_; }
  std::unique_ptr<const ProductEpilogue> take(std::unique_ptr<const Step> step) {
    epilogue_->step = std::move(step);
    return std::move(epilogue_);
  }

 private:
  template <class F>
  void for_each_axis(F f) const {
    for (std::size_t axis : blocks_.batch.axes) f(axis, std::int64_t{1});
    for (const BlockedAxes* part : {&blocks_.rows, &blocks_.columns})
      for (std::size_t k = 0; k < part->axes.size(); ++k) f(part->axes[k], part->extents[k]);
  }

  StridedView add(const StridedView& view, std::size_t number) {
    const auto size = static_cast<std::int64_t>(size_of(view.dtype));
    ProductEpilogue::View place{view.buffer, view.offset * size, {}};
    for_each_axis([&](std::size_t axis, std::int64_t block) {
      place.block_strides.push_back(view.strides[axis] * block * size);
    });
    epilogue_->views.push_back(std::move(place));
    return {static_cast<BufferId>(number), view.dtype, 0, shape_, view.strides};
  }

  const Blocks& blocks_;
  Shape shape_;
  MapGroup inner_;
  std::unique_ptr<ProductEpilogue> epilogue_ = std::make_unique<ProductEpilogue>();
};

}  // namespace

/// The product whose results the view reads one by one in the order of the space, if nobody else
/// reads them and its factors are still what they were.
const EmittedProduct* Epilogues::product_for(const MapGroup& group, const StridedView& view,
                                             const LoopReads& all) const {
  const auto place = products_.find(view.buffer);
  if (place == products_.end() || view.offset != 0 || view.shape != group.space || !view.is_contiguous())
    return nullptr;
  const EmittedProduct& product = place->second;
  const auto uses = static_cast<std::uint32_t>(std::ranges::count(all.consumed, view.buffer));
  return std::ranges::count(all.views, view.buffer, &StridedView::buffer) == 1 &&
                 lowering_.is_unread(view.buffer, product.step, uses) &&
                 std::ranges::none_of(product.reads,
                                      [&](const StridedView& read) {
                                        return lowering_.is_written_after(read.buffer, product.step);
                                      })
             ? &product
             : nullptr;
}

bool Epilogues::emit(const MapGroup& group, const LoopReads& all) {
  const PassLog::Scope scope(lowering_.log(), BackendPass::epilogues);
  if (!lowering_.does(BackendPass::epilogues) || products_.empty() || reads_across(group)) return false;
  for (const MapGroup::SlotInfo& slot : group.slots) {
    if (slot.view == MapGroup::kNoView || !slot.is_input) continue;
    const auto results = static_cast<std::size_t>(slot.view);
    const EmittedProduct* const product = product_for(group, group.views[results], all);
    if (product == nullptr || !emit_inside(*product, group, results)) continue;
    products_.erase(group.views[results].buffer);
    if (PassLog* const log = lowering_.log()) {
      log->count(BackendPass::epilogues, 1, 1);
      log->write(BackendPass::epilogues, to_text(group));
    }
    return true;
  }
  return false;
}

/// The product again, now with the group; `results` is the view that reads it.
bool Epilogues::emit_inside(const EmittedProduct& product, const MapGroup& group, std::size_t results) {
  const KernelTable& kernels = lowering_.kernels();
  const int lanes = product.plan.dtype == DType::f32 ? kernels.f32.lanes : kernels.f64.lanes;
  const std::optional<Blocks> blocks = blocks_for(product, group, 2 * lanes);
  if (!blocks) return false;
  EpilogueBuilder builder(group, *blocks, results);
  std::unique_ptr<const Step> step =
      make_group_kernel_step(builder.inner(), lowering_.kernel_collector(), true);
  if (!step) return false;
  ProductPlan plan = product.plan;
  plan.c_m = {blocks->columns.count(), {}};
  plan.c_n = {1, {}};
  std::vector<StridedView> reads = product.reads, writes;
  for (const MapGroup::SlotInfo& slot : group.slots)
    if (slot.view != MapGroup::kNoView && static_cast<std::size_t>(slot.view) != results)
      (slot.is_input ? reads : writes).push_back(group.views[static_cast<std::size_t>(slot.view)]);
  if (group.reduced) writes.push_back(group.reduced->out);
  lowering_.drop_step(product.step, group.views[results].buffer);
  lowering_.emit(make_product_step(std::move(plan), kernels, builder.take(std::move(step))), reads, writes);
  return true;
}

}  // namespace loipe::cpu
