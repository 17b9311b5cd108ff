// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiling/axis_flow.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "backends/cpu/lowering/op_lowerings.h"
#include "jacobian/coordinate.h"
#include "ops/recorded/einsum_spec.h"
#include "ops/shape_checks.h"

namespace loipe::cpu {

namespace {

using Flow = std::optional<AxisFlow>;

std::size_t index_of(std::int64_t axis) { return static_cast<std::size_t>(axis); }

/// One node and one axis of its result.
struct Place {
  const Program& program;
  Value node;
  std::int64_t axis;

  const Attributes& attributes() const { return program.attributes(node); }
  const Shape& shape() const { return program.shape(node); }
  std::int64_t extent() const { return shape()[index_of(axis)]; }
  std::span<const Value> operands() const { return program.operands(node); }
  const Shape& operand_shape(std::size_t k) const { return program.shape(operands()[k]); }
};

Flow one_operand(std::int64_t axis) { return AxisFlow{{axis}}; }

bool is_floating_or_bool(DType dtype) { return is_floating(dtype) || dtype == DType::boolean; }

/// Integer operands may have no kernel, and what runs by reference evaluation allocates.
Flow through_elementwise(const Place& p) {
  AxisFlow flow;
  for (Value operand : p.operands())
    if (!is_floating_or_bool(p.program.type(operand).dtype)) return std::nullopt;
  for (std::size_t k = 0; k < p.operands().size(); ++k) {
    const Shape& shape = p.operand_shape(k);
    const bool has_axis = shape.size() == p.shape().size() && shape[index_of(p.axis)] == p.extent();
    flow.operand_axes.push_back(has_axis ? p.axis : AxisFlow::kWhole);
  }
  return flow;
}

/// The one axis of the label in each operand; nothing when an operand has it twice.
Flow through_labels(const std::vector<std::vector<Label>>& operands, Label label) {
  AxisFlow flow;
  for (const std::vector<Label>& labels : operands) {
    if (std::ranges::count(labels, label) > 1) return std::nullopt;
    const auto place = std::ranges::find(labels, label);
    flow.operand_axes.push_back(place == labels.end() ? AxisFlow::kWhole : place - labels.begin());
  }
  return flow;
}

Flow through_einsum(const Place& p) {
  const EinsumSpec spec = EinsumSpec::parse(p.attributes().text("spec"));
  return through_labels(spec.operands, spec.result[index_of(p.axis)]);
}

/// The result has the batch axes, then the free ones of lhs and of rhs.
Flow through_dot(const Place& p) {
  const auto axes = [&](const char* name) { return ops::integers_or(p.attributes(), name, {}); };
  const Integers batch[2] = {axes("lhs_batch"), axes("rhs_batch")};
  const Integers contract[2] = {axes("lhs_contract"), axes("rhs_contract")};
  std::int64_t left = p.axis;
  if (left < static_cast<std::int64_t>(batch[0].size()))
    return AxisFlow{{batch[0][index_of(left)], batch[1][index_of(left)]}};
  left -= static_cast<std::int64_t>(batch[0].size());
  for (std::size_t side = 0; side < 2; ++side)
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(p.operand_shape(side).size()); ++axis) {
      const bool is_free =
          std::ranges::count(batch[side], axis) + std::ranges::count(contract[side], axis) == 0;
      if (!is_free || left-- > 0) continue;
      return side == 0 ? AxisFlow{{axis, AxisFlow::kWhole}} : AxisFlow{{AxisFlow::kWhole, axis}};
    }
  return std::nullopt;
}

Flow through_transpose(const Place& p) {
  return one_operand(p.attributes().integers("permutation")[index_of(p.axis)]);
}

/// The axis of the operand with as many elements before and after it.
Flow through_reshape(const Place& p) {
  std::int64_t before = 1, passed = 1;
  for (std::int64_t axis = 0; axis < p.axis; ++axis) before *= p.shape()[index_of(axis)];
  const Shape& shape = p.operand_shape(0);
  for (std::size_t axis = 0; axis < shape.size(); passed *= shape[axis++])
    if (passed == before && shape[axis] == p.extent()) return one_operand(static_cast<std::int64_t>(axis));
  return std::nullopt;
}

Flow through_broadcast(const Place& p) {
  const Integers& dimensions = p.attributes().integers("dimensions");
  for (std::size_t k = 0; k < dimensions.size(); ++k)
    if (dimensions[k] == p.axis && p.operand_shape(0)[k] == p.extent())
      return one_operand(static_cast<std::int64_t>(k));
  return one_operand(AxisFlow::kWhole);
}

Flow through_reduce(const Place& p) {
  const Integers& reduced = p.attributes().integers("axes");
  std::int64_t left = p.axis;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(p.operand_shape(0).size()); ++axis)
    if (std::ranges::count(reduced, axis) == 0 && left-- == 0) return one_operand(axis);
  return std::nullopt;
}

Flow through_slice(const Place& p) {
  const bool is_kept = p.operand_shape(0)[index_of(p.axis)] == p.extent();
  return is_kept ? one_operand(p.axis) : std::nullopt;
}

Flow through_pad(const Place& p) {
  for (const char* name : {"low", "high", "interior"})
    if (p.attributes().integers(name)[index_of(p.axis)] != 0) return std::nullopt;
  return AxisFlow{{p.axis, AxisFlow::kWhole}};
}

Flow through_concatenate(const Place& p) {
  if (p.attributes().integer("axis") == p.axis) return std::nullopt;
  return AxisFlow{std::vector<std::int64_t>(p.operands().size(), p.axis)};
}

/// Index operands are sliced along the label where it is among their labels.
bool add_index_operands(const std::vector<Coordinate>& coordinates, Label label, AxisFlow& flow) {
  for (const Coordinate& c : coordinates) {
    if (!c.index) continue;
    const auto place = std::ranges::find(c.index->labels, label);
    std::int64_t& axis = flow.operand_axes[c.index->value.index];
    const std::int64_t wanted =
        place == c.index->labels.end() ? AxisFlow::kWhole : place - c.index->labels.begin();
    if (axis != AxisFlow::kWhole && axis != wanted) return false;
    axis = wanted;
  }
  return true;
}

/// The axes of a gather's result are its labels.
Flow through_gather(const Place& p) {
  const std::vector<Coordinate> from = parse_coordinates(p.attributes().text("from"));
  const auto label = static_cast<Label>(p.axis);
  AxisFlow flow{std::vector<std::int64_t>(p.operands().size(), AxisFlow::kWhole)};
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (!from[axis].is_affine() || !contains(from[axis], label)) continue;
    if (!is_bare(from[axis], p.operand_shape(0)[axis], p.shape()) || flow.operand_axes[0] != AxisFlow::kWhole)
      return std::nullopt;
    flow.operand_axes[0] = static_cast<std::int64_t>(axis);
  }
  return add_index_operands(from, label, flow) ? Flow(flow) : std::nullopt;
}

Flow through_scatter(const Place& p) {
  const std::vector<Coordinate> to = parse_coordinates(p.attributes().text("to"));
  const Integers &extents = p.attributes().integers("extents"), &axes = p.attributes().integers("axes");
  const Coordinate& own = to[index_of(p.axis)];
  if (!is_bare(own, p.extent(), extents)) return std::nullopt;
  AxisFlow flow{std::vector<std::int64_t>(p.operands().size(), AxisFlow::kWhole)};
  for (std::size_t k = 0; k < axes.size(); ++k)
    if (axes[k] == static_cast<std::int64_t>(own.label()))
      flow.operand_axes[0] = static_cast<std::int64_t>(k);
  if (p.attributes().has("base")) flow.operand_axes[1] = p.axis;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    if (axis == index_of(p.axis) || !to[axis].is_affine() || !contains(to[axis], own.label())) continue;
    if (!to[axis].is_label()) return std::nullopt;
    flow.shifted_label = own.label();
  }
  return add_index_operands(to, own.label(), flow) ? Flow(flow) : std::nullopt;
}

using FlowFunction = Flow (*)(const Place&);

bool is_one(std::int64_t extent) { return extent == 1; }

constexpr std::int64_t kNoSum = std::int64_t{1} << 30;

/// Extent of the other result axes that the same factors have: the rest of the rows or columns.
/// A large number where there is no matrix product.
std::int64_t extent_beside_in_einsum(const Place& p) {
  std::vector<const TensorType*> types;
  for (Value operand : p.operands()) types.push_back(&p.program.type(operand));
  const EinsumPlan plan(p.attributes().text("spec"), types);
  if (plan.labels.size() == plan.spec.result.size()) return kNoSum;
  const auto factors_of = [&](Label label) {
    std::vector<bool> has;
    for (std::size_t i : plan.factors) has.push_back(std::ranges::count(plan.spec.operands[i], label) > 0);
    return has;
  };
  const Label own = plan.spec.result[index_of(p.axis)];
  const std::vector<bool> own_factors = factors_of(own);
  if (std::ranges::count(own_factors, false) == 0) return kNoSum;
  std::int64_t extent = 1;
  bool has_other_side = false;
  for (Label label : plan.spec.result) {
    if (label == own || plan.extents[label] == 1) continue;
    const std::vector<bool> factors = factors_of(label);
    if (factors == own_factors) extent *= plan.extents[label];
    else has_other_side |= std::ranges::count(factors, false) > 0;
  }
  return has_other_side ? extent : kNoSum;
}

/// Extent of the axes of one side that are neither batch nor summed.
std::int64_t free_extent_in_dot(const Place& p, std::size_t side) {
  const Shape& shape = p.operand_shape(side);
  std::int64_t extent = element_count(shape);
  for (const char* kind : {"_batch", "_contract"})
    for (std::int64_t axis :
         ops::integers_or(p.attributes(), (side == 0 ? "lhs" : "rhs") + std::string(kind), {}))
      extent /= std::max<std::int64_t>(shape[index_of(axis)], 1);
  return extent;
}

std::int64_t extent_beside_in_dot(const Place& p, const AxisFlow& flow) {
  const std::size_t side = flow.operand_axes[0] != AxisFlow::kWhole ? 0 : 1;
  return free_extent_in_dot(p, 1 - side) > 1 ? free_extent_in_dot(p, side) / p.extent() : kNoSum;
}

/// For every operand which of its axes are summed over; nothing for an op that sums nothing.
std::vector<std::vector<bool>> summed_axes(const Place& p) {
  const std::string_view op = p.program.op(p.node).name.value;
  std::vector<std::vector<bool>> summed;
  for (std::size_t k = 0; k < p.operands().size(); ++k) summed.emplace_back(p.operand_shape(k).size(), false);
  if (op == "einsum") {
    const EinsumSpec spec = EinsumSpec::parse(p.attributes().text("spec"));
    bool has_sum = false;
    for (std::size_t k = 0; k < summed.size(); ++k)
      for (std::size_t axis = 0; axis < summed[k].size(); ++axis)
        has_sum |= summed[k][axis] = std::ranges::count(spec.result, spec.operands[k][axis]) == 0;
    if (!has_sum) return {};
  } else if (op == "dot_general") {
    for (std::size_t k = 0; k < 2; ++k)
      for (std::int64_t axis : ops::integers_or(p.attributes(), k == 0 ? "lhs_contract" : "rhs_contract", {}))
        summed[k][index_of(axis)] = true;
  } else if (op.starts_with("reduce_")) {
    for (std::int64_t axis : p.attributes().integers("axes")) summed[0][index_of(axis)] = true;
  } else {
    return {};
  }
  return summed;
}

/// With a slice of one the axes on both sides of it become neighbours. If both are summed they become
/// one run, whose sum is another tree; and the axis before the innermost becomes one of neighbours.
bool merges_sums(const Shape& shape, std::int64_t axis, const std::vector<bool>& summed) {
  if (is_innermost(shape, axis)) return true;
  const auto next_summed = [&](std::int64_t step) {
    std::int64_t k = axis + step;
    while (k >= 0 && k < static_cast<std::int64_t>(shape.size()) && shape[index_of(k)] == 1) k += step;
    return k >= 0 && k < static_cast<std::int64_t>(shape.size()) && summed[index_of(k)];
  };
  return next_summed(-1) && next_summed(1);
}

std::unordered_map<const OpDef*, FlowFunction> make_flows() {
  std::unordered_map<const OpDef*, FlowFunction> flows;
  for (const OpDef* op : all_ops())
    if (lowering_of(*op).adds_to_group) flows[op] = through_elementwise;
  flows[&find_op("einsum")] = through_einsum;
  flows[&find_op("dot_general")] = through_dot;
  flows[&find_op("transpose")] = through_transpose;
  flows[&find_op("reshape")] = through_reshape;
  flows[&find_op("broadcast_in_dim")] = through_broadcast;
  flows[&find_op("slice")] = through_slice;
  flows[&find_op("pad")] = through_pad;
  flows[&find_op("concatenate")] = through_concatenate;
  flows[&find_op("gather")] = through_gather;
  flows[&find_op("scatter")] = through_scatter;
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_min"}) flows[&find_op(op)] = through_reduce;
  return flows;
}

/// A coordinate that was the label is now read from the operand `position_operand`.
std::string shifted_coordinates(std::string_view text, std::int64_t axis, Label label,
                                std::size_t position_operand) {
  std::vector<Coordinate> to = parse_coordinates(text);
  for (std::size_t k = 0; k < to.size(); ++k)
    if (k != index_of(axis) && to[k].is_affine() && contains(to[k], label)) {
      to[k] = Coordinate{};
      to[k].index = IndexArray{{label}, nullptr, Value{static_cast<std::uint32_t>(position_operand)}};
    }
  return print_coordinates(to);
}

void set_element(Attributes& attributes, const char* name, std::size_t place, std::int64_t value) {
  Integers list = attributes.integers(name);
  list[place] = value;
  attributes.set(name, std::move(list));
}

}  // namespace

bool is_innermost(const Shape& shape, std::int64_t axis) {
  return std::all_of(shape.begin() + axis + 1, shape.end(), is_one) &&
         !std::all_of(shape.begin(), shape.begin() + axis, is_one);
}

std::optional<AxisFlow> axis_flow(const Program& program, Value node, std::int64_t axis) {
  static const std::unordered_map<const OpDef*, FlowFunction> flows = make_flows();
  if (!is_floating_or_bool(program.type(node).dtype)) return std::nullopt;
  const auto known = flows.find(&program.op(node));
  return known == flows.end() ? std::nullopt : known->second({program, node, axis});
}

std::int64_t shortest_slice(const Program& program, Value node, std::int64_t axis, const AxisFlow& flow) {
  constexpr std::int64_t kTile = 16;
  const Place place{program, node, axis};
  const std::vector<std::vector<bool>> summed = summed_axes(place);
  if (summed.empty()) return 1;
  std::int64_t shortest = is_innermost(program.shape(node), axis) ? 2 : 1;
  for (std::size_t k = 0; k < flow.operand_axes.size(); ++k)
    if (flow.operand_axes[k] != AxisFlow::kWhole &&
        merges_sums(place.operand_shape(k), flow.operand_axes[k], summed[k]))
      shortest = 2;
  const bool is_in_all = std::ranges::count(flow.operand_axes, AxisFlow::kWhole) == 0;
  if (is_in_all) return shortest;
  const std::int64_t others = program.op(node).name.value == "einsum" ? extent_beside_in_einsum(place)
                                                                      : extent_beside_in_dot(place, flow);
  return std::max(shortest, (kTile + others - 1) / std::max<std::int64_t>(others, 1));
}

Attributes sliced_attributes(const Program& program, Value node, std::int64_t axis, const AxisFlow& flow,
                             std::int64_t extent) {
  Attributes attributes = program.attributes(node);
  const std::string_view op = program.op(node).name.value;
  for (const char* name : {"shape", "limit"})
    if (attributes.has(name)) set_element(attributes, name, index_of(axis), extent);
  if (op == "gather") set_element(attributes, "extents", index_of(axis), extent);
  if (op == "scatter") {
    const std::string to = attributes.text("to");
    set_element(attributes, "extents", parse_coordinates(to)[index_of(axis)].label(), extent);
    if (flow.shifted_label)
      attributes.set("to", shifted_coordinates(to, axis, *flow.shifted_label, program.operands(node).size()));
  }
  return attributes;
}

}  // namespace loipe::cpu
