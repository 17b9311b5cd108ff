// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/tiled_step.h"

#include <loipe/tensor.h>

#include <algorithm>

#include "backends/cpu/threads.h"

namespace loipe::cpu {

namespace {

/// A tile's plan, and how its memory lies in a thread's scratch: where each buffer is,
/// the arena, what its steps share, and their scratch.
class PreparedTile {
 public:
  explicit PreparedTile(std::unique_ptr<TilePlan> tile) : tile_(std::move(tile)) {
    shared_ = whole_lines(tile_->plan.buffers.size() * sizeof(std::byte*)) + tile_->plan.arena_bytes;
    scratch_ = shared_ + tile_->plan.shared_bytes();
    bytes_ = scratch_ + tile_->plan.scratch_bytes();
  }

  std::size_t bytes() const { return bytes_; }

  void run(const RunContext& around, std::byte* memory, std::int64_t start) const {
    auto** const bases = reinterpret_cast<std::byte**>(memory);
    place_buffers(around, memory, start, bases);
    const RunContext context{bases, memory + scratch_, 0, memory + shared_, 1};
    for (const auto& step : tile_->plan.steps) step->run(context);
  }

 private:
  void place_buffers(const RunContext& around, std::byte* memory, std::int64_t start,
                     std::byte** bases) const {
    const Plan& plan = tile_->plan;
    std::byte* const arena = memory + whole_lines(plan.buffers.size() * sizeof(std::byte*));
    const auto bound = [&](const TileBinding& b) {
      return around.bases[b.outer] + b.offset + b.step * start;
    };
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      switch (buffer.kind) {
        case BufferKind::arena: bases[i] = arena + buffer.position; break;
        case BufferKind::argument: bases[i] = bound(tile_->arguments[buffer.position]); break;
        case BufferKind::output: bases[i] = bound(tile_->outputs[buffer.position]); break;
        // Steps only read constants.
        case BufferKind::constant:
          bases[i] = const_cast<std::byte*>(plan.constants[buffer.position]->bytes().data());
          break;
      }
    }
  }

  std::unique_ptr<TilePlan> tile_;
  std::size_t shared_, scratch_, bytes_;
};

class TiledStep final : public Step {
 public:
  TiledStep(std::int64_t extent, std::int64_t slice, std::unique_ptr<TilePlan> tile,
            std::unique_ptr<TilePlan> last)
      : slice_(slice), tiles_((extent + slice - 1) / slice) {
    kinds_.emplace_back(std::move(tile));
    if (last) kinds_.emplace_back(std::move(last));
  }

  void run(const RunContext& context) const override {
    parallel_for(context.threads, tiles_, [&](std::int64_t task, int thread) {
      const PreparedTile& tile = task + 1 == tiles_ ? kinds_.back() : kinds_.front();
      tile.run(context, context.scratch_of<std::byte>(thread), task * slice_);
    });
  }

  std::size_t scratch_bytes() const override {
    return std::max(kinds_.front().bytes(), kinds_.back().bytes());
  }

 private:
  std::int64_t slice_, tiles_;
  std::vector<PreparedTile> kinds_;  ///< of all tiles, and of the last one if it differs
};

}  // namespace

std::unique_ptr<Step> make_tiled_step(std::int64_t extent, std::int64_t slice, std::unique_ptr<TilePlan> tile,
                                      std::unique_ptr<TilePlan> last) {
  return std::make_unique<TiledStep>(extent, slice, std::move(tile), std::move(last));
}

}  // namespace loipe::cpu
