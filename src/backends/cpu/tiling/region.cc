// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiling/region.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "backends/cpu/tiling/growth.h"
#include "ir/op_def.h"

namespace loipe::cpu {

namespace {

/// Inner values of fewer bytes together, as a share of a tile's, are not worth a region.
constexpr std::int64_t kInnerShare = 8;
/// The same for a value that a region may grow from.
constexpr std::int64_t kSeedShare = 64;
/// A byte that is written for later or read from before costs as much as so many hidden ones gain. First
/// regions grow that have next to nothing at their border, then others from what is left.
constexpr std::int64_t kBorderWeights[] = {64, 8, 1};
/// Regions of nodes that are content with short slices are preferred: their tiles are small.
constexpr std::int64_t kLongestNeeds[] = {2, 16};
/// Tiles for the threads to share, where slices need not be longer.
constexpr std::int64_t kEnoughTiles = 16;
constexpr std::size_t kMostRegions = 64, kMostGrowths = 1024;

class RegionFinder {
 public:
  RegionFinder(const Program& program, const TilingOptions& options)
      : program_(program), options_(options), tiling_(one_by_one(program)) {}

  Tiling run() {
    const std::vector<Value> seeds = seeds_by_size();
    if (seeds.empty()) return std::move(tiling_);
    around_.emplace(program_);
    growth_.emplace(*around_);
    for (const std::int64_t border_weight : kBorderWeights) {
      forget_known();
      growths_ = 0;
      for (Value seed : seeds) {
        if (tiling_.regions.size() >= kMostRegions || growths_ >= kMostGrowths) break;
        if (tiling_.region_of[seed.index] != Tiling::kNone) continue;
        if (std::optional<Region> region = best_region(seed, border_weight)) accept(std::move(*region));
      }
    }
    return std::move(tiling_);
  }

 private:
  std::vector<Value> seeds_by_size() const {
    const auto bytes = [&](Value v) { return static_cast<std::int64_t>(program_.type(v).byte_size()); };
    std::vector<Value> seeds;
    for (Value v : tiling_.order)
      if (!program_.operands(v).empty() && bytes(v) >= options_.tile_bytes / kSeedShare) seeds.push_back(v);
    std::ranges::sort(seeds, {}, [&](Value v) { return std::pair(-bytes(v), v.index); });
    return seeds;
  }

  /// Over the axes of the seed, the one whose region hides most and has least to read and
  /// write around it; the outer one of equals.
  std::optional<Region> best_region(Value seed, std::int64_t border_weight) {
    std::optional<Region> best;
    std::int64_t most = options_.tile_bytes / kInnerShare - 1;
    for (std::size_t need = 0; need < std::size(kLongestNeeds); ++need) {
      const Shape& shape = program_.shape(seed);
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] <= kLongestNeeds[need] || is_known(seed, axis, need)) continue;
        growth_->grow(tiling_, seed, static_cast<std::int64_t>(axis), kLongestNeeds[need]);
        ++growths_;
        remember_reached(need);
        const std::int64_t gain = growth_->bytes_hidden() - border_weight * growth_->bytes_at_border();
        if (gain <= most + most / 8) continue;
        if (const std::int64_t slice = slice_of(shape[axis]); slice < shape[axis]) {
          most = gain;
          best = growth_->region(shape[axis], slice);
        }
      }
      most += most / 2;
    }
    return best;
  }

  // A region that was refused would be refused from its other members too.

  bool is_known(Value v, std::size_t axis, std::size_t need) const {
    const std::vector<bool>& known = known_[need];
    return axis < kAxes && known[v.index * kAxes + axis];
  }
  void remember_reached(std::size_t need) {
    for (Value v : growth_->reached())
      if (const std::int64_t axis = growth_->axis(v); axis >= 0 && axis < static_cast<std::int64_t>(kAxes))
        known_[need][v.index * kAxes + static_cast<std::size_t>(axis)] = true;
  }
  void forget_known() {
    for (std::vector<bool>& known : known_) known.assign(program_.size() * kAxes, false);
  }

  /// The extent itself if the region is not worth tiling. Tiles that all read something which is larger than
  /// themselves are up to twice as long: then that passes through the cache half as often.
  std::int64_t slice_of(std::int64_t extent) const {
    const std::int64_t live = growth_->live_bytes(), shortest = growth_->shortest_slice();
    const std::int64_t bytes =
        std::clamp(growth_->bytes_of_whole_inputs(), options_.tile_bytes, 2 * options_.tile_bytes);
    if (!growth_->has_sums() || (!options_.is_parallel && live <= bytes)) return extent;
    std::int64_t slice = bytes * extent / std::max<std::int64_t>(live, 1);
    if (options_.is_parallel) slice = std::min(slice, extent / kEnoughTiles);
    return even_slice(extent, std::max(slice, shortest), shortest);
  }

  /// A divisor of the extent if one is near, so that all tiles are of one length; else
  /// the next length that leaves no last tile which is too short.
  static std::int64_t even_slice(std::int64_t extent, std::int64_t slice, std::int64_t shortest) {
    for (std::int64_t divisor = slice; divisor >= std::max((slice + 1) / 2, shortest); --divisor)
      if (extent % divisor == 0) return divisor;
    while (slice < extent && extent % slice != 0 && extent % slice < shortest) ++slice;
    return slice;
  }

  void accept(Region region) {
    const auto number = static_cast<std::int32_t>(tiling_.regions.size());
    for (Value node : region.nodes) tiling_.region_of[node.index] = number;
    tiling_.regions.push_back(std::move(region));
    reorder();
    forget_known();
  }

  /// The block that a node runs in: its region, or itself.
  std::size_t block_of(Value v) const {
    const std::int32_t region = tiling_.region_of[v.index];
    return region == Tiling::kNone ? v.index : program_.size() + static_cast<std::size_t>(region);
  }
  std::span<const Value> nodes_of(const std::size_t& block, const Value& single) const {
    if (block < program_.size()) return std::span(&single, 1);
    return tiling_.regions[block - program_.size()].nodes;
  }

  /// Operands before users, blocks as a whole, else as in the program (Kahn's algorithm).
  void reorder() {
    const std::size_t blocks = program_.size() + tiling_.regions.size();
    std::vector<std::uint32_t> missing(blocks, 0);
    for (Value v : tiling_.order)
      for (Value user : around_->users(v)) missing[block_of(user)] += block_of(user) != block_of(v);
    // A region stands where its first member does.
    const auto key = [&](std::size_t block) {
      return block < program_.size() ? block : tiling_.regions[block - program_.size()].nodes.front().index;
    };
    const auto later = [&](std::size_t a, std::size_t b) { return key(a) > key(b); };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
    for (std::size_t block = 0; block < blocks; ++block) {
      const bool exists = block >= program_.size() || tiling_.region_of[block] == Tiling::kNone;
      if (exists && missing[block] == 0) ready.push(block);
    }
    tiling_.order.clear();
    while (!ready.empty()) {
      const std::size_t block = ready.top();
      ready.pop();
      const Value single{static_cast<std::uint32_t>(block)};
      for (Value node : nodes_of(block, single)) {
        tiling_.order.push_back(node);
        for (Value user : around_->users(node))
          if (block_of(user) != block && --missing[block_of(user)] == 0) ready.push(block_of(user));
      }
    }
  }

  static constexpr std::size_t kAxes = 8;  ///< further ones are tried again and again

  const Program& program_;
  TilingOptions options_;
  Tiling tiling_;
  std::optional<Surroundings> around_;
  std::optional<Growth> growth_;
  std::vector<bool> known_[std::size(kLongestNeeds)];  ///< by node and axis
  std::size_t growths_ = 0;
};

}  // namespace

Tiling one_by_one(const Program& program) {
  Tiling tiling{{}, std::vector(program.size(), Tiling::kNone), {}};
  for (std::uint32_t i = 0; i < program.size(); ++i) tiling.order.push_back(Value{i});
  return tiling;
}

std::string to_text(const Program& program, const Region& region) {
  std::string text = std::to_string(region.nodes.size()) + " nodes along a label of " +
                     std::to_string(region.extent) + ", tiles of " + std::to_string(region.slice) + ":";
  for (Value node : region.nodes)
    text += " %" + std::to_string(node.index) + " " + std::string(program.op(node).name.value) + " axis " +
            std::to_string(region.members.at(node.index).axis) + (node == region.nodes.back() ? "\n" : ",");
  return text;
}

Tiling find_regions(const Program& program, const TilingOptions& options) {
  return RegionFinder(program, options).run();
}

}  // namespace loipe::cpu
