// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiling/region.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <unordered_set>

#include "backends/cpu/lowering/op_lowerings.h"

namespace loipe::cpu {

namespace {

/// Inner values of fewer bytes together, as a share of a tile's, are not worth a region.
constexpr std::int64_t kInnerShare = 8;
/// The same for a value that a region may grow from.
constexpr std::int64_t kSeedShare = 64;
/// A byte that is written for later or read from before costs as much as so many hidden ones gain. First
/// regions grow that have next to nothing at their border, then others from what is left.
constexpr std::int64_t kBorderWeights[] = {64, 8, 1};
constexpr std::size_t kMostRegions = 64, kMostSeeds = 256;
/// Slices that are shorter along the innermost axis waste lines of memory. That matters for values of some
/// size, among those of the region.
constexpr std::int64_t kLine = 16, kLargeValue = 4096, kSmallShare = 16;
/// Tiles for the threads to share, where slices need not be longer.
constexpr std::int64_t kEnoughTiles = 16;

std::size_t index_of(std::int64_t axis) { return static_cast<std::size_t>(axis); }

bool is_leaf(const Program& program, Value v) {
  return &program.op(v) == &argument_op() || &program.op(v) == &constant_op();
}

class RegionFinder {
 public:
  RegionFinder(const Program& program, const TilingOptions& options) : program_(program), options_(options) {
    tiling_.region_of.assign(program.size(), Tiling::kNone);
    for (std::uint32_t i = 0; i < program.size(); ++i) tiling_.order.push_back(Value{i});
  }

  Tiling run() {
    const std::vector<Value> seeds = seeds_by_size();
    if (seeds.empty()) return std::move(tiling_);
    find_users();
    for (const std::int64_t border_weight : kBorderWeights) grow_from(seeds, border_weight);
    return std::move(tiling_);
  }

 private:
  std::int64_t bytes(Value v) const { return static_cast<std::int64_t>(program_.type(v).byte_size()); }

  void grow_from(const std::vector<Value>& seeds, std::int64_t border_weight) {
    std::size_t tried = 0;
    for (Value seed : seeds) {
      if (tiling_.regions.size() >= kMostRegions || tried >= kMostSeeds) break;
      if (tiling_.region_of[seed.index] != Tiling::kNone) continue;
      ++tried;
      if (std::optional<Region> region = best_region(seed, border_weight)) accept(std::move(*region));
    }
  }

  std::vector<Value> seeds_by_size() const {
    std::vector<Value> seeds;
    for (Value v : tiling_.order)
      if (!is_leaf(program_, v) && bytes(v) >= options_.tile_bytes / kSeedShare) seeds.push_back(v);
    std::ranges::stable_sort(seeds, std::ranges::greater(), [&](Value v) { return bytes(v); });
    return seeds;
  }

  void find_users() {
    users_.resize(program_.size());
    is_output_.assign(program_.size(), false);
    for (Value output : program_.outputs()) is_output_[output.index] = true;
    is_live_ = is_output_;
    for (auto i = static_cast<std::uint32_t>(program_.size()); i-- > 0;) {
      if (!is_live_[i]) continue;
      for (Value operand : program_.operands(Value{i})) {
        users_[operand.index].push_back(Value{i});
        is_live_[operand.index] = true;
      }
    }
  }

  /// Over the axes of the seed, the one whose region hides most and has least to read and
  /// write around it; the outer one of equals.
  /// Regions of nodes that are content with short slices are preferred, since
  /// their tiles are small.
  std::optional<Region> best_region(Value seed, std::int64_t border_weight) {
    std::optional<Region> best;
    std::int64_t most = options_.tile_bytes / kInnerShare - 1;
    for (const std::int64_t longest_need : {std::int64_t{2}, kLine}) {
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(program_.shape(seed).size()); ++axis) {
        if (program_.shape(seed)[index_of(axis)] <= longest_need) continue;
        Region region = grown(seed, axis, longest_need);
        const std::int64_t gain = bytes_hidden(region) - border_weight * bytes_at_border(region);
        if (gain <= most + most / 8 || !choose_slice(region)) continue;
        most = gain;
        best = std::move(region);
      }
      most += most / 2;
    }
    return best;
  }

  /// The region around the seed of nodes that want slices of at most `longest_need` elements.
  Region grown(Value seed, std::int64_t axis, std::int64_t longest_need) {
    Region region;
    region.extent = program_.shape(seed)[index_of(axis)];
    region.slice = longest_need;
    large_ = std::max(kLargeValue, element_count(program_.shape(seed)) / kSmallShare);
    collect(region, seed, axis);
    keep_convex(region);
    return region;
  }

  /// Slices of fewer elements than this along the axis are slow, or summed in another order.
  std::int64_t shortest_slice_of(Value node, std::int64_t axis, const AxisFlow& flow) const {
    std::int64_t shortest = shortest_slice(program_, node, axis, flow);
    if (element_count(program_.shape(node)) < large_) shortest = std::min<std::int64_t>(shortest, 2);
    const auto consider = [&](Value v, std::int64_t own) {
      if (own == AxisFlow::kWhole) return;
      const Shape& shape = program_.shape(v);
      if (is_innermost(shape, own) && element_count(shape) >= large_) shortest = std::max(shortest, kLine);
    };
    consider(node, axis);
    for (std::size_t k = 0; k < flow.operand_axes.size(); ++k)
      consider(program_.operands(node)[k], flow.operand_axes[k]);
    return shortest;
  }

  /// Neither elementwise nor a view: what such nodes compute is kept in memory.
  bool sums(Value node) const {
    return !lowering_of(program_.op(node)).adds_to_group || program_.op(node).name.value == "einsum";
  }

  bool add(Region& region, Value node, std::int64_t axis) const {
    if (!is_live_[node.index] || is_leaf(program_, node) || tiling_.region_of[node.index] != Tiling::kNone ||
        region.contains(node))
      return false;
    std::optional<AxisFlow> flow = axis_flow(program_, node, axis);
    if (!flow || shortest_slice_of(node, axis, *flow) > region.slice) return false;
    region.members.emplace(node.index, Region::Member{axis, std::move(*flow)});
    return true;
  }

  /// Everything that the label reaches: by users, and by operands that are not small. Small ones may as
  /// well be computed before, whole: with them the region would spread over much that others need.
  void collect(Region& region, Value seed, std::int64_t axis) const {
    if (!add(region, seed, axis)) return;
    std::deque<Value> open{seed};
    while (!open.empty()) {
      const Value node = open.front();
      open.pop_front();
      const Region::Member& member = region.members.at(node.index);
      const std::int64_t own_axis = member.axis;
      const std::vector<std::int64_t> operand_axes = member.flow.operand_axes;
      for (std::size_t k = 0; k < operand_axes.size(); ++k)
        if (operand_axes[k] != AxisFlow::kWhole &&
            kSmallShare * bytes(program_.operands(node)[k]) >= bytes(seed) &&
            add(region, program_.operands(node)[k], operand_axes[k]))
          open.push_back(program_.operands(node)[k]);
      for (Value user : users_[node.index])
        if (const auto user_axis = axis_of_user(region, user, node, own_axis);
            user_axis && add(region, user, *user_axis))
          open.push_back(user);
    }
  }

  /// The axis of the user that reads `node` along `axis` only.
  std::optional<std::int64_t> axis_of_user(const Region& region, Value user, Value node,
                                           std::int64_t axis) const {
    if (region.contains(user)) return std::nullopt;
    const Shape& shape = program_.shape(user);
    for (std::int64_t own = 0; own < static_cast<std::int64_t>(shape.size()); ++own) {
      if (shape[index_of(own)] != region.extent) continue;
      const std::optional<AxisFlow> flow = axis_flow(program_, user, own);
      if (flow && reads_along(user, *flow, node, axis)) return own;
    }
    return std::nullopt;
  }

  bool reads_along(Value user, const AxisFlow& flow, Value node, std::int64_t axis) const {
    for (std::size_t k = 0; k < flow.operand_axes.size(); ++k)
      if (program_.operands(user)[k] == node && flow.operand_axes[k] != axis) return false;
    return true;
  }

  bool reads_members_along_their_axes(const Region& region, Value node, const Region::Member& member) const {
    for (std::size_t k = 0; k < member.flow.operand_axes.size(); ++k) {
      const auto operand = region.members.find(program_.operands(node)[k].index);
      if (operand != region.members.end() && operand->second.axis != member.flow.operand_axes[k])
        return false;
    }
    return true;
  }

  /// Walks the nodes in the order of execution and drops members that need a whole
  /// member, or a result of one that has left the region. A region found before counts
  /// as one node.
  void keep_convex(Region& region) const {
    std::vector<bool> is_behind(program_.size(), false);  ///< depends on the region through the outside
    for (std::size_t i = 0; i < tiling_.order.size();) {
      const std::int32_t block = tiling_.region_of[tiling_.order[i].index];
      std::size_t end = i + 1;
      while (block != Tiling::kNone && end < tiling_.order.size() &&
             tiling_.region_of[tiling_.order[end].index] == block)
        ++end;
      bool depends = false, is_late = false;
      for (std::size_t k = i; k < end; ++k)
        for (Value operand : program_.operands(tiling_.order[k])) {
          depends |= region.contains(operand);
          is_late |= is_behind[operand.index];
        }
      const Value node = tiling_.order[i];
      if (const auto member = region.members.find(node.index); member != region.members.end()) {
        if (is_late || !reads_members_along_their_axes(region, node, member->second))
          region.members.erase(member);
        else depends = false;
      }
      for (std::size_t k = i; k < end; ++k) is_behind[tiling_.order[k].index] = depends || is_late;
      i = end;
    }
    for (Value v : tiling_.order)
      if (region.contains(v)) region.nodes.push_back(v);
  }

  bool is_inner(const Region& region, Value node) const {
    return !is_output_[node.index] &&
           std::ranges::all_of(users_[node.index], [&](Value user) { return region.contains(user); });
  }

  std::int64_t bytes_hidden(const Region& region) const {
    std::int64_t sum = 0;
    for (Value node : region.nodes)
      if (is_inner(region, node)) sum += bytes(node);
    return sum;
  }

  /// Bytes of members that exist as a whole, and of values that are computed before.
  std::int64_t bytes_at_border(const Region& region) const {
    std::int64_t sum = 0;
    std::unordered_set<std::uint32_t> inputs;
    for (Value node : region.nodes) {
      if (!is_inner(region, node)) sum += bytes(node);
      for (Value operand : program_.operands(node))
        if (!region.contains(operand) && !is_leaf(program_, operand) && inputs.insert(operand.index).second)
          sum += bytes(operand);
    }
    return sum;
  }

  /// The most bytes of members that are alive at one time, as whole values.
  std::int64_t live_bytes(const Region& region) const {
    std::unordered_map<std::uint32_t, std::size_t> uses;
    for (Value node : region.nodes)
      for (Value user : users_[node.index]) uses[node.index] += region.contains(user);
    std::int64_t live = 0, most = 0;
    for (Value node : region.nodes) {
      live += bytes(node);
      most = std::max(most, live);
      if (uses[node.index] == 0) live -= bytes(node);
      for (Value operand : program_.operands(node))
        if (region.contains(operand) && --uses[operand.index] == 0) live -= bytes(operand);
    }
    return most;
  }

  /// False if the region is not worth tiling.
  bool choose_slice(Region& region) const {
    const std::int64_t live = live_bytes(region);
    if (std::ranges::none_of(region.nodes, [&](Value node) { return sums(node); })) return false;
    std::int64_t shortest = 1;
    for (Value node : region.nodes) {
      const Region::Member& member = region.members.at(node.index);
      shortest = std::max(shortest, shortest_slice_of(node, member.axis, member.flow));
    }
    if (!options_.is_parallel && live <= options_.tile_bytes) return false;
    std::int64_t slice = options_.tile_bytes * region.extent / std::max<std::int64_t>(live, 1);
    if (options_.is_parallel) slice = std::min(slice, region.extent / kEnoughTiles);
    slice = std::max(slice, shortest);
    region.slice = even_slice(region.extent, slice, shortest);
    return region.slice < region.extent;
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
  }

  /// The block that a node runs in: its region, or itself.
  std::size_t block_of(Value v) const {
    const std::int32_t region = tiling_.region_of[v.index];
    return region == Tiling::kNone ? v.index : program_.size() + static_cast<std::size_t>(region);
  }

  /// Operands before users, blocks as a whole, else as in the program (Kahn's algorithm).
  void reorder() {
    const std::size_t blocks = program_.size() + tiling_.regions.size();
    std::vector<std::uint32_t> missing(blocks, 0);
    for (std::uint32_t i = 0; i < program_.size(); ++i)
      if (is_live_[i])
        for (Value operand : program_.operands(Value{i}))
          missing[block_of(Value{i})] += block_of(operand) != block_of(Value{i});
    // A region stands where its first member does.
    const auto key = [&](std::size_t block) {
      const bool is_node = block < program_.size();
      return is_node ? block : tiling_.regions[block - program_.size()].nodes.front().index;
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
      const std::span<const Value> nodes =
          block < program_.size() ? std::span(&single, 1)
                                  : std::span<const Value>(tiling_.regions[block - program_.size()].nodes);
      for (Value node : nodes) {
        tiling_.order.push_back(node);
        for (Value user : users_[node.index])
          if (block_of(user) != block && --missing[block_of(user)] == 0) ready.push(block_of(user));
      }
    }
  }

  const Program& program_;
  TilingOptions options_;
  Tiling tiling_;
  std::vector<std::vector<Value>> users_;  ///< that an output needs, once per use
  std::vector<bool> is_output_, is_live_;
  std::int64_t large_ = 0;  ///< elements of a value that counts as large in the region that grows
};

}  // namespace

Tiling find_regions(const Program& program, const TilingOptions& options) {
  return RegionFinder(program, options).run();
}

}  // namespace loipe::cpu
