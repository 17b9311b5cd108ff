// SPDX-License-Identifier: Apache-2.0
#include "support/random_program.h"

#include <algorithm>
#include <functional>

#include "base/rng.h"
#include "ops/emit.h"
#include "support/choices.h"

namespace loipe::testing {

namespace {

/// Grows a program node by node; each step picks operands among all values so far.
class Generator {
 public:
  Generator(Choices choices, const std::string& name, const RandomProgramOptions& options)
      : choices_(choices), options_(options), builder_(name) {}

  Program run() && {
    for (int i = 0; i < options_.arguments; ++i)
      push(builder_.argument(std::string(1, static_cast<char>('x' + i)), {options_.dtype, random_shape()}));
    for (int i = 0; i < options_.nodes && !choices_.is_exhausted(); ++i) step();
    return builder_.finish(outputs());
  }

 private:
  using Step = void (Generator::*)();

  Shape random_shape() {
    Shape shape(static_cast<std::size_t>(choices_.between(0, 3)));
    for (std::int64_t& extent : shape) extent = choices_.chance(0.15) ? 1 : choices_.between(2, 4);
    return shape;
  }

  void push(Value v) { values_.push_back(v); }
  /// Recent values are likelier, so that programs become deep.
  Value pick() {
    const auto n = static_cast<std::int64_t>(values_.size());
    return values_[static_cast<std::size_t>(std::max(choices_.below(n), choices_.below(n)))];
  }
  Value pick_with_rank(std::int64_t least) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Value v = pick();
      if (builder_.type(v).rank() >= least && builder_.type(v).element_count() <= 256) return v;
    }
    const Shape shape(static_cast<std::size_t>(least), 2);
    return ops::broadcast_in_dim(builder_, total(pick()), shape, {});
  }
  Value total(Value v) {
    return builder_.type(v).rank() == 0 ? v : ops::reduce_sum(builder_, v, all_axes(v));
  }
  /// A value of that shape: an existing one, or one made from a scalar.
  Value of_shape(const Shape& shape) {
    std::vector<Value> fitting;
    for (Value v : values_)
      if (builder_.shape(v) == shape) fitting.push_back(v);
    if (!fitting.empty() && choices_.chance(0.8))
      return fitting[static_cast<std::size_t>(choices_.below(static_cast<std::int64_t>(fitting.size())))];
    const Value scalar = total(pick());
    return shape.empty() ? scalar : ops::broadcast_in_dim(builder_, scalar, shape, {});
  }

  void unary() {
    const Value x = pick();
    switch (choices_.below(4)) {
      case 0: return push(ops::sin(builder_, x));
      case 1: return push(ops::tanh(builder_, x));
      case 2: return push(ops::neg(builder_, x));
      default: return push(ops::mul(builder_, 0.5, x));
    }
  }
  void binary() {
    const Value x = pick();
    Shape shape = builder_.shape(x);
    for (std::int64_t& extent : shape)
      if (choices_.chance(0.2)) extent = 1;
    const Value y = choices_.chance(0.1) ? x : of_shape(shape);
    switch (choices_.below(3)) {
      case 0: return push(ops::add(builder_, x, y));
      case 1: return push(ops::sub(builder_, x, y));
      default: return push(ops::mul(builder_, x, y));
    }
  }
  void transpose() {
    const Value x = pick_with_rank(2);
    Integers permutation;
    for (std::int64_t axis = 0; axis < builder_.type(x).rank(); ++axis) permutation.push_back(axis);
    for (std::size_t i = permutation.size(); i > 1; --i)
      std::swap(permutation[i - 1],
                permutation[static_cast<std::size_t>(choices_.below(static_cast<std::int64_t>(i)))]);
    push(ops::transpose(builder_, x, permutation));
  }
  void symmetric_sum() {
    const Value x = pick_with_rank(2);
    const Shape& shape = builder_.shape(x);
    if (shape.size() != 2 || shape[0] != shape[1]) return transpose();
    push(ops::add(builder_, x, ops::transpose(builder_, x, {1, 0})));
  }
  /// Any factorisation of the element count.
  void reshape() {
    const Value x = pick();
    std::int64_t rest = builder_.type(x).element_count();
    Shape shape;
    while (rest > 1) {
      std::int64_t factor = choices_.between(2, 12);
      if (rest % factor != 0) factor = choices_.chance(0.3) ? rest : 0;
      if (factor == 0) continue;
      shape.push_back(factor);
      rest /= factor;
    }
    if (choices_.chance(0.3))
      shape.insert(shape.begin() + choices_.between(0, static_cast<std::int64_t>(shape.size())), 1);
    push(ops::reshape(builder_, x, shape));
  }
  void slice() {
    const Value x = pick_with_rank(1);
    Integers start, limit, stride;
    for (std::int64_t extent : Shape(builder_.shape(x))) {
      start.push_back(choices_.below(extent));
      limit.push_back(choices_.between(start.back() + 1, extent));
      stride.push_back(choices_.between(1, 2));
    }
    push(ops::slice(builder_, x, start, limit, stride));
  }
  void pad() {
    const Value x = pick_with_rank(1);
    Integers low, high, interior;
    for (std::size_t axis = 0; axis < builder_.shape(x).size(); ++axis) {
      low.push_back(choices_.between(0, 1));
      high.push_back(choices_.between(0, 1));
      interior.push_back(choices_.chance(0.2) ? 1 : 0);
    }
    push(ops::pad(builder_, x, builder_.scalar(0.25, options_.dtype), low, high, interior));
  }
  void concatenate() {
    const Value x = pick_with_rank(1);
    const std::int64_t axis = choices_.below(builder_.type(x).rank());
    Shape shape = builder_.shape(x);
    shape[static_cast<std::size_t>(axis)] = choices_.between(1, 2);
    const std::vector<Value> parts{x, choices_.chance(0.3) ? x : of_shape(shape)};
    push(ops::concatenate(builder_, parts, axis));
  }
  void reduce() {
    const Value x = pick_with_rank(1);
    const Integers axes{choices_.below(builder_.type(x).rank())};
    push(choices_.chance(0.6) ? ops::reduce_sum(builder_, x, axes) : ops::reduce_max(builder_, x, axes));
  }
  void broadcast() {
    const Value x = pick();
    Shape shape = builder_.shape(x);
    if (shape.size() > 2) return reduce();
    const std::int64_t place = choices_.between(0, static_cast<std::int64_t>(shape.size()));
    Integers dimensions;
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis)
      dimensions.push_back(axis + (axis >= place));
    shape.insert(shape.begin() + place, choices_.between(1, 3));
    push(ops::broadcast_in_dim(builder_, x, shape, dimensions));
  }
  /// Rows by an index array with repeats, static or computed.
  void take() {
    const Value x = pick_with_rank(1);
    const Shape shape = builder_.shape(x);
    const std::int64_t count = choices_.between(1, 4);
    Tensor index(TensorType{DType::i64, {count}});
    for (std::int64_t i = 0; i < count; ++i) index.set(i, static_cast<double>(choices_.below(shape[0])));
    Value positions = builder_.constant(index);
    if (choices_.chance(0.3)) {  // the same numbers, but not known before the run
      const Value zero = ops::convert(builder_, ops::mul(builder_, 0.0, total(x)), DType::i64);
      positions = ops::add(builder_, positions, zero);
    }
    Integers extents{count};
    std::string from = "#1[a]";
    for (std::size_t axis = 1; axis < shape.size(); ++axis) {
      extents.push_back(shape[axis]);
      from += std::string(", ") + static_cast<char>('a' + axis);
    }
    push(builder_.emit("gather", {x, positions}, {{"extents", extents}, {"from", from}}));
  }
  void diagonal() {
    const Value x = pick_with_rank(2);
    const Shape shape = builder_.shape(x);
    const std::int64_t n = std::min(shape[0], shape[1]);
    if (shape.size() == 2)
      push(builder_.emit("gather", {x}, {{"extents", Integers{n}}, {"from", std::string("a, a")}}));
    else reshape();
  }
  void window() {
    const Value x = pick_with_rank(1);
    const Shape shape = builder_.shape(x);
    if (shape.size() != 1 || shape[0] < 3) return slice();
    push(
        builder_.emit("gather", {x}, {{"extents", Integers{shape[0] - 1, 2}}, {"from", std::string("a+b")}}));
  }
  void select() {
    const Value x = pick();
    const Value y = of_shape(builder_.shape(x));
    const Value condition = ops::gt(builder_, of_shape(builder_.shape(x)), 0.1);
    push(ops::select(builder_, condition, x, y));
  }
  void contract() {
    const Value x = pick_with_rank(1);
    const std::int64_t shared = builder_.shape(x).back();
    Shape shape{shared};
    if (choices_.chance(0.7)) shape.push_back(choices_.between(1, 3));
    const Value y = of_shape(shape);
    push(ops::dot_general(builder_, x, y, {builder_.type(x).rank() - 1}, {0}));
  }
  void masked_einsum() {
    const Value x = pick_with_rank(2);
    const Shape shape = builder_.shape(x);
    if (shape.size() != 2) return contract();
    const Value y = of_shape({shape[1], 2});
    const Value mask = ops::gt(builder_, of_shape(shape), 0.0);
    push(builder_.emit("einsum", {x, y, mask}, {{"spec", std::string("ab,bc,ab->ac")}}));
  }
  void batched_einsum() {
    const Value x = pick_with_rank(2);
    const Shape shape = builder_.shape(x);
    if (shape.size() != 2) return contract();
    const Value y = of_shape(shape);
    push(builder_.emit("einsum", {x, y},
                       {{"spec", std::string(choices_.chance(0.5) ? "ab,ab->a" : "ab,ac->abc")}}));
    if (builder_.type(values_.back()).element_count() > 300) values_.pop_back();
  }

  Integers all_axes(Value v) {
    Integers axes;
    for (std::int64_t axis = 0; axis < builder_.type(v).rank(); ++axis) axes.push_back(axis);
    return axes;
  }

  void step() {
    static constexpr Step kSteps[] = {
        &Generator::unary,         &Generator::unary,         &Generator::binary,
        &Generator::binary,        &Generator::transpose,     &Generator::reshape,
        &Generator::slice,         &Generator::pad,           &Generator::concatenate,
        &Generator::reduce,        &Generator::broadcast,     &Generator::take,
        &Generator::diagonal,      &Generator::window,        &Generator::select,
        &Generator::contract,      &Generator::contract,      &Generator::symmetric_sum,
        &Generator::masked_einsum, &Generator::batched_einsum};
    (this->*kSteps[choices_.below(std::size(kSteps))])();
  }

  std::vector<Value> outputs() {
    std::vector<bool> used(builder_.program().size(), false);
    for (std::uint32_t i = 0; i < builder_.program().size(); ++i)
      for (Value operand : builder_.program().operands(Value{i})) used[operand.index] = true;
    std::vector<Value> sinks;
    for (Value v : values_)
      if (!used[v.index]) sinks.push_back(v);
    if (!options_.all_sinks_are_outputs) {
      sinks.assign(1, values_.back());
      if (choices_.chance(0.3)) sinks.push_back(pick());  // also used, or an argument
    }
    return sinks;
  }

  Choices choices_;
  RandomProgramOptions options_;
  Builder builder_;
  std::vector<Value> values_;
};

}  // namespace

Program random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  return Generator(Choices(seed), "random_" + std::to_string(seed), options).run();
}

Program random_program(std::span<const std::uint8_t> bytes, const RandomProgramOptions& options) {
  return Generator(Choices(bytes), "from_bytes", options).run();
}

std::vector<Tensor> random_arguments(const Program& program, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> arguments;
  for (Value argument : program.arguments()) {
    Tensor tensor(program.type(argument));
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      tensor.set(i, rng.uniform(0.2, 1.2) * (rng.chance(0.5) ? 1 : -1));
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

}  // namespace loipe::testing
