// SPDX-License-Identifier: Apache-2.0
// A region becomes one step: the plan of a tile, run for all tiles.
#include <algorithm>
#include <map>
#include <numeric>

#include "backends/cpu/lowering/lowering.h"

namespace loipe::cpu {

namespace {

/// The part of a view that one tile sees, from its start.
StridedView sliced(StridedView view, std::int64_t axis, std::int64_t extent) {
  if (axis >= 0) view.shape[static_cast<std::size_t>(axis)] = extent;
  return view;
}

TileBinding binding_of(const StridedView& view, std::int64_t axis) {
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  return {view.buffer, view.offset * size,
          axis < 0 ? 0 : view.strides[static_cast<std::size_t>(axis)] * size};
}

std::shared_ptr<const Tensor> counted(std::int64_t extent) {
  auto numbers = std::make_shared<Tensor>(TensorType{DType::i64, {extent}});
  std::iota(numbers->elements<std::int64_t>().begin(), numbers->elements<std::int64_t>().end(), 0);
  return numbers;
}

std::int64_t axis_of(const TileProgram::Input& input) {
  return input.axis == TileProgram::Input::kPositions ? 0 : input.axis;
}

}  // namespace

/// Views of the whole inputs, in memory.
std::vector<StridedView> Lowering::tile_inputs(const TileProgram& tile, std::int64_t extent) {
  std::vector<StridedView> views;
  for (const TileProgram::Input& input : tile.inputs)
    views.push_back(input.axis == TileProgram::Input::kPositions ? constant(counted(extent))
                                                                 : view(input.value));
  return views;
}

/// What the tiles of a region read, and what is laid out for them in another order.
class RegionInputs {
 public:
  RegionInputs(Lowering& lowering, std::vector<StridedView> views)
      : lowering_(lowering), views_(std::move(views)) {}

  const std::vector<StridedView>& views() const { return views_; }
  std::size_t position(std::size_t argument, const Integers& order) {
    const auto [place, is_new] = places_.try_emplace({argument, order}, views_.size());
    if (is_new) views_.push_back(lowering_.copy_in_order(StridedView(views_[argument]), order));
    return place->second;
  }

 private:
  Lowering& lowering_;
  std::vector<StridedView> views_;  ///< first those of the tile program's arguments
  std::map<std::pair<std::size_t, Integers>, std::size_t> places_;  ///< in views_, by argument and order
};

namespace {

/// The part of an outer view that one tile sees. Inside, a view starts at its first element; where that is
/// comes from the binding.
StridedView bind(const StridedView& outer, std::int64_t axis, std::int64_t extent,
                 std::vector<TileBinding>& bindings) {
  StridedView view = sliced(outer, axis, extent);
  view.offset = 0;
  bindings.push_back(binding_of(outer, axis));
  return view;
}

/// Around one plan of a region's tiles.
class AroundTile final : public TileSurroundings {
 public:
  AroundTile(const TileProgram& tile, RegionInputs& inputs, std::vector<TileBinding>& bindings)
      : tile_(tile), inputs_(inputs), bindings_(bindings) {}

  StridedView bound(std::size_t argument, std::size_t place) {
    const std::int64_t axis = axis_of(tile_.inputs[argument]);
    const Shape& shape = tile_.program.shape(tile_.program.arguments()[argument]);
    return bind(inputs_.views()[place], axis, axis < 0 ? 0 : shape[static_cast<std::size_t>(axis)],
                bindings_);
  }
  LaidOut laid_out(std::size_t argument, const Integers& order) override {
    const std::size_t position = bindings_.size();
    return {bound(argument, inputs_.position(argument, order)), position};
  }

 private:
  const TileProgram& tile_;
  RegionInputs& inputs_;
  std::vector<TileBinding>& bindings_;
};

}  // namespace

std::unique_ptr<TilePlan> Lowering::plan_tile(const TileProgram& tile, RegionInputs& inputs,
                                              std::span<const StridedView> outputs) {
  auto result = std::make_unique<TilePlan>();
  AroundTile around(tile, inputs, result->arguments);
  BorderViews border;
  for (std::size_t i = 0; i < tile.inputs.size(); ++i) border.arguments.push_back(around.bound(i, i));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::int64_t axis = tile.outputs[i].axis;
    const Shape& shape = tile.program.shape(tile.program.outputs()[i]);
    border.outputs.push_back(bind(outputs[i], axis, shape[static_cast<std::size_t>(axis)], result->outputs));
  }
  LoweringOptions inner = options_;
  inner.tiling.is_parallel = false;
  result->plan = Lowering(tile.program, kernels_, inner, std::move(border), collector_, &around).run();
  return result;
}

/// Members use values outside and each other; a member without uses is not computed, and
/// what is made again still has its uses to come.
void Lowering::consume_uses_inside(const Region& region, const Leaving& leaving) {
  std::vector<Value> live;
  for (Value node : region.nodes)
    if (uses_[node.index] > 0 && !leaving.is_made_again[node.index]) live.push_back(node);
  for (Value node : live)
    for (Value operand : program_.operands(node)) consume_value(operand);
}

void Lowering::lower_region(const Region& region, const Leaving& leaving) {
  fusion_.close_all();
  const TileProgram tile = tile_program(program_, region, region.slice, leaving.is_written);
  RegionInputs inputs(*this, tile_inputs(tile, region.extent));
  std::vector<BufferId> consumed;
  for (Value node : region.nodes)
    if (uses_[node.index] > 0 && !leaving.is_made_again[node.index])
      for (Value operand : program_.operands(node))
        if (!region.contains(operand)) consumed.push_back(views_[operand.index].buffer);
  consume_uses_inside(region, leaving);
  std::vector<StridedView> writes;
  for (const TileProgram::Output& output : tile.outputs) writes.push_back(define_new(output.value));

  std::unique_ptr<TilePlan> last;
  if (const std::int64_t rest = region.extent % region.slice; rest != 0)
    last = plan_tile(tile_program(program_, region, rest, leaving.is_written), inputs, writes);
  std::unique_ptr<TilePlan> plan = plan_tile(tile, inputs, writes);
  emit(make_tiled_step(region.extent, region.slice, std::move(plan), std::move(last)), inputs.views(),
       writes);
  for (BufferId buffer : consumed) consume_buffer(buffer);
  for (Value node : region.nodes)
    if (leaving.is_made_again[node.index] && uses_[node.index] > 0) lower_node(node);
}

}  // namespace loipe::cpu
