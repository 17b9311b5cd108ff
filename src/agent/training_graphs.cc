// SPDX-License-Identifier: Apache-2.0
#include "agent/training_graphs.h"

#include <algorithm>
#include <cmath>

#include "orders/published/graph_spec.h"

namespace loipe::agent {

namespace {

using published::GraphSpec;
using published::InputRef;
using published::Operand;
using published::Params;
using published::Shape;
using published::VertexRef;

/// Values of the function so far: inputs first.
class SpecBuilder {
 public:
  int add_input(Shape shape) {
    spec_.input_shapes.push_back(shape);
    shapes_.push_back(std::move(shape));
    uses_.push_back(0);
    return size() - 1;
  }
  int add(const char* primitive, const std::vector<int>& operands, Shape shape, Params params = {}) {
    std::vector<Operand> references;
    for (int value : operands) {
      ++uses_[at(value)];
      const int inputs = static_cast<int>(spec_.input_shapes.size());
      if (value < inputs) references.emplace_back(InputRef{value});
      else references.emplace_back(VertexRef{value - inputs + 1});
    }
    spec_.vertices.push_back({primitive, std::move(references), shape, std::move(params)});
    shapes_.push_back(std::move(shape));
    uses_.push_back(0);
    return size() - 1;
  }

  int size() const { return static_cast<int>(shapes_.size()); }
  int vertices() const { return static_cast<int>(spec_.vertices.size()); }
  const Shape& shape(int value) const { return shapes_[at(value)]; }
  /// A value that nothing uses yet, if there is one, so that little is dead; else any recent one.
  int recent(Rng& rng, int reach) {
    const int low = std::max(0, size() - reach);
    for (int trial = 0; trial < 3; ++trial) {
      const auto value = static_cast<int>(rng.between(low, size() - 1));
      if (uses_[at(value)] == 0) return value;
    }
    return static_cast<int>(rng.between(low, size() - 1));
  }

  /// Outputs are the vertices that nothing uses, most of them, and always the last.
  published::Graph build(Rng& rng, double output_probability) {
    const int inputs = static_cast<int>(spec_.input_shapes.size());
    for (int value = inputs; value < size(); ++value)
      if (value == size() - 1 || (uses_[at(value)] == 0 && rng.chance(output_probability)))
        spec_.outputs.push_back(value - inputs + 1);
    return published::build_graph(spec_);
  }

 private:
  static std::size_t at(int value) { return static_cast<std::size_t>(value); }
  GraphSpec spec_;
  std::vector<Shape> shapes_;
  std::vector<int> uses_;
};

/// One vertex of a tensor graph.
void add_tensor_vertex(SpecBuilder& builder, Rng& rng, int reach) {
  const int x = builder.recent(rng, reach);
  const Shape shape = builder.shape(x);
  const double kind = rng.uniform();
  if (kind < 0.3) {
    builder.add(rng.chance(0.8) ? "sin" : "neg", {x}, shape);
    return;
  }
  for (int trial = 0; trial < 12; ++trial) {
    const int y = trial < 8 ? builder.recent(rng, reach) : static_cast<int>(rng.below(builder.size()));
    const Shape& other = builder.shape(y);
    if (kind < 0.65 && x != y && (other == shape || other.empty() || shape.empty())) {
      builder.add(rng.chance(0.5) ? "mul" : "add", {x, y}, shape.empty() ? other : shape);
      return;
    }
    if (kind >= 0.65 && shape.size() == 2 && !other.empty() && other[0] == shape[1]) {
      Params params;
      params.contract_lhs = {1};
      params.contract_rhs = {0};
      builder.add("dot_general", {x, y}, other.size() == 2 ? Shape{shape[0], other[1]} : Shape{shape[0]},
                  params);
      return;
    }
  }
  if (shape.size() == 2 && rng.chance(0.5)) {
    builder.add("transpose", {x}, {shape[1], shape[0]});
  } else if (shape.size() == 2) {
    Params params;
    const auto axis = static_cast<int>(rng.below(2));
    params.axes = {axis};
    const int sum = builder.add("reduce_sum", {x}, {shape[static_cast<std::size_t>(1 - axis)]}, params);
    if (rng.chance(0.5))
      builder.add("broadcast_in_dim", {sum}, axis == 0 ? Shape{1, shape[1]} : Shape{shape[0], 1});
  } else if (shape.size() == 1 && shape[0] > 1) {
    Params params;
    params.axes = {0};
    builder.add("reduce_sum", {x}, {}, params);
  } else {
    builder.add("exp", {x}, shape);
  }
}

}  // namespace

published::Graph random_scalar_graph(Rng& rng, int vertices) {
  SpecBuilder builder;
  const auto inputs = static_cast<int>(rng.between(1, std::max(2, std::min(12, vertices / 6))));
  for (int k = 0; k < inputs; ++k) builder.add_input({});
  const double unary = rng.uniform(0.1, 0.5), far = rng.uniform(0, 0.3);
  const auto reach = static_cast<int>(std::exp(rng.uniform(std::log(4.0), std::log(40.0))));
  while (builder.vertices() < vertices) {
    const int x = builder.recent(rng, reach);
    if (rng.chance(unary)) {
      builder.add("sin", {x}, {});
      continue;
    }
    int y = rng.chance(far) ? static_cast<int>(rng.below(builder.size())) : builder.recent(rng, reach);
    if (y == x) y = static_cast<int>(rng.below(builder.size()));
    builder.add("mul", {x, y}, {});
  }
  return builder.build(rng, rng.uniform(0.3, 1));
}

published::Graph random_tensor_graph(Rng& rng, int vertices) {
  SpecBuilder builder;
  std::vector<std::int64_t> extents;
  const double largest = rng.uniform(1, 4);
  for (int k = 0; k < 3; ++k)
    extents.push_back(static_cast<std::int64_t>(std::exp(rng.uniform(std::log(2.0), largest))));
  const auto extent = [&] { return extents[static_cast<std::size_t>(rng.below(3))]; };
  const auto inputs = static_cast<int>(rng.between(2, std::max(3, std::min(12, vertices / 5))));
  for (int k = 0; k < inputs; ++k) {
    const double rank = rng.uniform();
    builder.add_input(rank < 0.15 ? Shape{} : rank < 0.5 ? Shape{extent()} : Shape{extent(), extent()});
  }
  const auto reach = static_cast<int>(std::exp(rng.uniform(std::log(4.0), std::log(30.0))));
  while (builder.vertices() < vertices) add_tensor_vertex(builder, rng, reach);
  if (rng.chance(0.5)) {
    // A loss: the last value summed up.
    const int last = builder.size() - 1;
    Params params;
    for (std::size_t axis = 0; axis < builder.shape(last).size(); ++axis)
      params.axes.push_back(static_cast<int>(axis));
    builder.add(params.axes.empty() ? "exp" : "reduce_sum", {last}, {}, params);
    return builder.build(rng, 0);
  }
  return builder.build(rng, rng.uniform(0, 0.6));
}

published::Graph random_training_graph(Rng& rng, int most) {
  const auto vertices = static_cast<int>(std::exp(rng.uniform(std::log(12.0), std::log(std::max(13, most)))));
  return rng.chance(0.5) ? random_scalar_graph(rng, vertices) : random_tensor_graph(rng, vertices);
}

}  // namespace loipe::agent
