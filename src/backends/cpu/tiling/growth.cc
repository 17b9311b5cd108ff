// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiling/growth.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "backends/cpu/lowering/op_lowerings.h"

namespace loipe::cpu {

namespace {

/// Slices that are shorter along the innermost axis waste lines of memory. That matters for values of some
/// size, among those of the region.
constexpr std::int64_t kLine = 16, kLargeValue = 4096, kSmallShare = 16;

std::size_t index_of(std::int64_t axis) { return static_cast<std::size_t>(axis); }

/// Neither elementwise nor a view: what such nodes compute is kept in memory.
bool sums(const Program& program, Value node) {
  const std::string_view op = program.op(node).name.value;
  return !lowering_of(program.op(node)).adds_to_group || op == "einsum" || op.starts_with("reduce_");
}

}  // namespace

Surroundings::Surroundings(const Program& program)
    : program_(program),
      users_(program.size()),
      is_output_(program.size(), false),
      slicings_(program.size()) {
  for (Value output : program.outputs()) is_output_[output.index] = true;
  is_live_ = is_output_;
  for (auto i = static_cast<std::uint32_t>(program.size()); i-- > 0;) {
    if (!is_live_[i]) continue;
    for (Value operand : program.operands(Value{i})) {
      users_[operand.index].push_back(Value{i});
      is_live_[operand.index] = true;
    }
  }
}

bool Surroundings::is_leaf(Value v) const {
  return &program_.op(v) == &argument_op() || &program_.op(v) == &constant_op();
}

const Surroundings::Slicing& Surroundings::slicing(Value node, std::int64_t axis) const {
  std::vector<std::optional<Slicing>>& of_node = slicings_[node.index];
  if (of_node.empty()) of_node.resize(program_.shape(node).size());
  std::optional<Slicing>& known = of_node[index_of(axis)];
  if (known) return *known;
  known.emplace();
  known->flow = axis_flow(program_, node, axis);
  if (!known->flow) return *known;
  known->shortest = cpu::shortest_slice(program_, node, axis, *known->flow);
  const auto consider = [&](Value v, std::int64_t own) {
    if (own != AxisFlow::kWhole && is_innermost(program_.shape(v), own))
      known->longest_value = std::max(known->longest_value, element_count(program_.shape(v)));
  };
  consider(node, axis);
  for (std::size_t k = 0; k < known->flow->operand_axes.size(); ++k)
    consider(program_.operands(node)[k], known->flow->operand_axes[k]);
  return *known;
}

void Growth::grow(const Tiling& tiling, Value seed, std::int64_t axis, std::int64_t longest_need) {
  for (Value v : reached_) axis_[v.index] = kOutside;
  reached_.clear();
  nodes_.clear();
  extent_ = around_.program().shape(seed)[index_of(axis)];
  longest_need_ = longest_need;
  seed_bytes_ = around_.bytes(seed);
  large_ = std::max(kLargeValue, element_count(around_.program().shape(seed)) / kSmallShare);
  if (!add(tiling, seed, axis)) return;
  for (std::size_t next = 0; next < reached_.size(); ++next) add_neighbours(tiling, reached_[next]);
  keep_convex(tiling);
}

/// Short products are slow, but small ones do not matter as long as they are products.
std::int64_t Growth::need_of(Value node, const Surroundings::Slicing& slicing) const {
  const bool is_small = element_count(around_.program().shape(node)) < large_;
  const std::int64_t shortest = is_small ? std::min<std::int64_t>(slicing.shortest, 2) : slicing.shortest;
  return slicing.longest_value >= large_ ? std::max(shortest, kLine) : shortest;
}

bool Growth::add(const Tiling& tiling, Value node, std::int64_t axis) {
  if (contains(node) || !around_.is_live(node) || around_.is_leaf(node) ||
      tiling.region_of[node.index] != Tiling::kNone)
    return false;
  const Surroundings::Slicing& slicing = around_.slicing(node, axis);
  if (!slicing.flow || need_of(node, slicing) > longest_need_) return false;
  axis_[node.index] = axis;
  reached_.push_back(node);
  return true;
}

/// The label reaches users, and operands that are not small. Small ones may as well be computed
/// before, whole: with them the region would spread over much that others need.
void Growth::add_neighbours(const Tiling& tiling, Value node) {
  const std::vector<std::int64_t>& operand_axes = slicing(node).flow->operand_axes;
  for (std::size_t k = 0; k < operand_axes.size(); ++k) {
    const Value operand = around_.program().operands(node)[k];
    if (operand_axes[k] != AxisFlow::kWhole && kSmallShare * around_.bytes(operand) >= seed_bytes_)
      add(tiling, operand, operand_axes[k]);
  }
  for (Value user : around_.users(node))
    if (!contains(user))
      if (const auto user_axis = axis_of_user(user, node)) add(tiling, user, *user_axis);
}

/// The axis of the user that reads `node` along its axis only.
std::optional<std::int64_t> Growth::axis_of_user(Value user, Value node) const {
  const Shape& shape = around_.program().shape(user);
  const std::span<const Value> operands = around_.program().operands(user);
  for (std::int64_t own = 0; own < static_cast<std::int64_t>(shape.size()); ++own) {
    if (shape[index_of(own)] != extent_) continue;
    const std::optional<AxisFlow>& flow = around_.slicing(user, own).flow;
    if (!flow) continue;
    bool reads_along = true;
    for (std::size_t k = 0; k < operands.size(); ++k)
      reads_along &= operands[k] != node || flow->operand_axes[k] == axis_[node.index];
    if (reads_along) return own;
  }
  return std::nullopt;
}

bool Growth::reads_members_along_their_axes(Value node) const {
  const std::vector<std::int64_t>& operand_axes = slicing(node).flow->operand_axes;
  for (std::size_t k = 0; k < operand_axes.size(); ++k) {
    const Value operand = around_.program().operands(node)[k];
    if (contains(operand) && axis_[operand.index] != operand_axes[k]) return false;
  }
  return true;
}

/// Walks the nodes in the order of execution and drops members that need a whole
/// member, or a result of one that has left the region. A region found before counts
/// as one node.
void Growth::keep_convex(const Tiling& tiling) {
  const std::vector<Value>& order = tiling.order;
  std::vector<bool> is_behind(order.size(), false);  ///< depends on the region through the outside
  for (std::size_t i = 0; i < order.size();) {
    const std::int32_t block = tiling.region_of[order[i].index];
    std::size_t end = i + 1;
    while (block != Tiling::kNone && end < order.size() && tiling.region_of[order[end].index] == block) ++end;
    bool depends = false, is_late = false;
    for (std::size_t k = i; k < end; ++k)
      for (Value operand : around_.program().operands(order[k])) {
        depends |= contains(operand);
        is_late |= is_behind[operand.index];
      }
    if (const Value node = order[i]; contains(node)) {
      if (is_late || !reads_members_along_their_axes(node)) {
        axis_[node.index] = kOutside;
      } else {
        nodes_.push_back(node);
        depends = false;
      }
    }
    for (std::size_t k = i; k < end; ++k) is_behind[order[k].index] = depends || is_late;
    i = end;
  }
}

bool Growth::is_inner(Value v) const {
  return !around_.is_output(v) &&
         std::ranges::all_of(around_.users(v), [&](Value user) { return contains(user); });
}

std::int64_t Growth::bytes_hidden() const {
  std::int64_t sum = 0;
  for (Value node : nodes_)
    if (is_inner(node)) sum += around_.bytes(node);
  return sum;
}

std::int64_t Growth::bytes_at_border() const {
  std::int64_t sum = 0;
  std::unordered_set<std::uint32_t> inputs;
  for (Value node : nodes_) {
    if (!is_inner(node)) sum += around_.bytes(node);
    for (Value operand : around_.program().operands(node))
      if (!contains(operand) && !around_.is_leaf(operand) && inputs.insert(operand.index).second)
        sum += around_.bytes(operand);
  }
  return sum;
}

std::int64_t Growth::bytes_of_whole_inputs() const {
  std::int64_t sum = 0;
  std::unordered_set<std::uint32_t> inputs;
  for (Value node : nodes_) {
    const std::span<const Value> operands = around_.program().operands(node);
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (!contains(operands[k]) && slicing(node).flow->operand_axes[k] == AxisFlow::kWhole &&
          inputs.insert(operands[k].index).second)
        sum += around_.bytes(operands[k]);
  }
  return sum;
}

std::int64_t Growth::live_bytes() const {
  std::unordered_map<std::uint32_t, std::size_t> uses;
  for (Value node : nodes_)
    for (Value user : around_.users(node)) uses[node.index] += contains(user);
  std::int64_t live = 0, most = 0;
  for (Value node : nodes_) {
    live += around_.bytes(node);
    most = std::max(most, live);
    if (uses[node.index] == 0) live -= around_.bytes(node);
    for (Value operand : around_.program().operands(node))
      if (contains(operand) && --uses[operand.index] == 0) live -= around_.bytes(operand);
  }
  return most;
}

std::int64_t Growth::shortest_slice() const {
  std::int64_t shortest = 1;
  for (Value node : nodes_) shortest = std::max(shortest, need_of(node, slicing(node)));
  return shortest;
}

bool Growth::has_sums() const {
  return std::ranges::any_of(nodes_, [&](Value node) { return sums(around_.program(), node); });
}

Region Growth::region(std::int64_t extent, std::int64_t slice) const {
  Region region{nodes_, {}, extent, slice};
  for (Value node : nodes_)
    region.members.emplace(node.index, Region::Member{axis(node), *slicing(node).flow});
  return region;
}

}  // namespace loipe::cpu
