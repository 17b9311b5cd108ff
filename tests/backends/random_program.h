// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ir/builder.h"
#include "ir/op_def.h"

namespace loipe {

struct RandomProgram {
  Program program;
  std::vector<Tensor> arguments;
};

/// Draws programs over elementwise, shape, movement, reduction and contraction ops.
/// Values stay of moderate size, and only constants are compared, so that rounding
/// neither explodes nor flips a selection.
class RandomProgramMaker {
 public:
  RandomProgramMaker(std::uint64_t seed, DType dtype) : rng_(seed), dtype_(dtype) {}

  RandomProgram make(int nodes) {
    for (int i = 0; i < 4; ++i) add_argument();
    for (int i = 0; i < nodes; ++i) add_node();
    std::vector<Value> outputs{values_.back()};
    for (Value v : values_)
      if (rng_.chance(0.25)) outputs.push_back(v);
    if (!masks_.empty()) outputs.push_back(masks_.back());
    return {builder_.finish(outputs), std::move(arguments_)};
  }

 private:
  std::int64_t extent() {
    static constexpr std::int64_t kExtents[] = {1, 2, 3, 4, 5, 8, 17, 33};
    return rng_.chance(0.03) ? 0 : kExtents[rng_.below(8)];
  }
  Shape draw_shape() {
    Shape shape(static_cast<std::size_t>(rng_.below(4)));
    for (std::int64_t& e : shape) e = extent();
    return shape;
  }
  void add_argument() {
    const Shape shape = draw_shape();
    Tensor tensor(TensorType{dtype_, shape});
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng_.normal());
    values_.push_back(builder_.argument("x" + std::to_string(arguments_.size()), tensor.type()));
    arguments_.push_back(std::move(tensor));
  }

  Value pick() {
    return values_[static_cast<std::size_t>(rng_.below(static_cast<std::int64_t>(values_.size())))];
  }
  /// A value that broadcasts with v: of the same shape, a scalar, or with extents 1.
  Value partner(Value v) {
    std::vector<Value> fitting;
    for (Value other : values_)
      if (broadcasts(builder_.shape(other), builder_.shape(v))) fitting.push_back(other);
    return fitting[static_cast<std::size_t>(rng_.below(static_cast<std::int64_t>(fitting.size())))];
  }
  static bool broadcasts(const Shape& a, const Shape& b) {
    if (a.empty() || b.empty()) return true;
    if (a.size() != b.size()) return false;
    for (std::size_t axis = 0; axis < a.size(); ++axis)
      if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) return false;
    return true;
  }
  void keep(Value v) {
    if (builder_.type(v).element_count() <= 40000) values_.push_back(v);
  }
  Value emit(std::string_view op, std::initializer_list<Value> operands, const Attributes& attributes = {}) {
    return builder_.emit(op, operands, attributes);
  }
  /// Into (-1, 1), so that repeated products do not grow.
  Value bounded(Value v) { return emit("tanh", {v}); }

  void add_node() {
    switch (rng_.below(8)) {
      case 0: return keep(unary());
      case 1:
      case 2: return keep(binary());
      case 3: return keep(selection());
      case 4: return keep(shape_change());
      case 5: return keep(movement());
      case 6: return keep(reduction());
      default: return keep(contraction());
    }
  }

  Value unary() {
    const Value x = pick();
    switch (rng_.below(9)) {
      case 0: return emit("neg", {x});
      case 1: return emit("exp", {bounded(x)});
      case 2: return emit("logistic", {x});
      case 3: return emit("sqrt", {emit("add", {emit("abs", {x}), builder_.scalar(1, dtype_)})});
      case 4: return emit("integer_pow", {bounded(x)}, {{"y", rng_.between(1, 4)}});
      case 5: return emit("sin", {x});
      case 6: return emit("stop_gradient", {x});
      case 7: return emit("log", {emit("add", {emit("abs", {x}), builder_.scalar(0.5, dtype_)})});
      default: return through_other_float(x);
    }
  }
  Value through_other_float(Value x) {
    const Value wide = emit("convert_element_type", {x}, {{"dtype", DType::f64}});
    return emit("convert_element_type", {emit("mul", {wide, builder_.scalar(0.5, DType::f64)})},
                {{"dtype", dtype_}});
  }

  Value binary() {
    const Value x = pick(), y = partner(x);
    switch (rng_.below(6)) {
      case 0: return emit("add", {x, y});
      case 1: return emit("sub", {x, y});
      case 2: return emit("mul", {bounded(x), y});
      case 3: return emit("div", {x, emit("add", {emit("abs", {y}), builder_.scalar(1, dtype_)})});
      case 4: return emit("max", {x, y});
      default: return emit("min", {x, y});
    }
  }

  /// Compares numbers that no rounding has touched.
  Value mask_of(Value x) {
    Tensor numbers(builder_.type(x));
    for (std::int64_t i = 0; i < numbers.element_count(); ++i) numbers.set(i, rng_.normal());
    const Value exact = builder_.constant(std::move(numbers)),
                limit = builder_.scalar(rng_.uniform(-0.5, 0.5), dtype_);
    Value mask = rng_.chance(0.5) ? emit("lt", {exact, limit}) : emit("ge", {limit, exact});
    if (rng_.chance(0.2)) mask = emit("not", {mask});
    for (Value other : masks_)
      if (builder_.shape(other) == builder_.shape(mask) && rng_.chance(0.3))
        mask = emit(rng_.chance(0.5) ? "and" : "xor", {mask, other});
    masks_.push_back(mask);
    return mask;
  }
  Value selection() {
    const Value x = pick();
    if (rng_.chance(0.2)) return emit("convert_element_type", {mask_of(x)}, {{"dtype", dtype_}});
    const Value mask = mask_of(x);
    return emit("select", {mask, x, rng_.chance(0.5) ? builder_.scalar(0.25, dtype_) : emit("neg", {x})});
  }

  Value shape_change() {
    const Value x = pick();
    const Shape shape = builder_.shape(x);
    switch (rng_.below(4)) {
      case 0: return emit("transpose", {x}, {{"permutation", permutation(shape.size())}});
      case 1: return reshape(x);
      case 2: return broadcast(x);
      default: return slice(x);
    }
  }
  Integers permutation(std::size_t rank) {
    Integers order(rank);
    for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = rank; i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(rng_.below(static_cast<std::int64_t>(i)))]);
    return order;
  }
  Value reshape(Value x) {
    const std::int64_t count = builder_.type(x).element_count();
    Shape shape{count};
    for (std::int64_t divisor : {2, 3, 4, 5, 8, 17})
      if (shape.size() < 3 && count > 0 && shape.back() % divisor == 0 && rng_.chance(0.4)) {
        shape.back() /= divisor;
        shape.insert(shape.begin(), divisor);
      }
    if (rng_.chance(0.3)) shape.push_back(1);
    return emit("reshape", {x}, {{"shape", shape}});
  }
  Value broadcast(Value x) {
    Shape shape;
    Integers dimensions;
    for (std::int64_t e : builder_.shape(x)) {
      if (shape.size() < 3 && rng_.chance(0.3)) shape.push_back(extent());
      dimensions.push_back(static_cast<std::int64_t>(shape.size()));
      shape.push_back(e == 1 ? extent() : e);
    }
    if (shape.size() < 3) shape.push_back(extent());
    return emit("broadcast_in_dim", {x}, {{"shape", shape}, {"dimensions", dimensions}});
  }
  Value slice(Value x) {
    Integers start, limit, stride;
    for (std::int64_t e : builder_.shape(x)) {
      start.push_back(rng_.below(e + 1));
      limit.push_back(rng_.between(start.back(), e));
      stride.push_back(rng_.between(1, 3));
    }
    return emit("slice", {x}, {{"start", start}, {"limit", limit}, {"stride", stride}});
  }

  Value movement() {
    const Value x = pick();
    switch (rng_.below(4)) {
      case 0: return pad(x);
      case 1: return concatenate(x);
      case 2: return gather(x);
      default: return scatter(x);
    }
  }
  Value pad(Value x) {
    Integers low, high, interior;
    for (std::int64_t e : builder_.shape(x)) {
      low.push_back(e > 2 ? rng_.between(-1, 2) : rng_.between(0, 2));
      high.push_back(rng_.between(e > 2 ? -1 : 0, 2));
      interior.push_back(rng_.below(2));
    }
    return emit("pad", {x, builder_.scalar(0.75, dtype_)},
                {{"low", low}, {"high", high}, {"interior", interior}});
  }
  Value concatenate(Value x) {
    if (builder_.shape(x).empty()) return emit("neg", {x});
    const std::int64_t axis = rng_.below(static_cast<std::int64_t>(builder_.shape(x).size()));
    return emit("concatenate", {x, emit("neg", {x}), x}, {{"axis", axis}});
  }
  static std::string letter(std::size_t label) { return std::string(1, static_cast<char>('a' + label)); }
  /// Affine positions that may leave the axis, or an index array.
  Value gather(Value x) {
    std::vector<Value> operands{x};
    Integers extents;
    std::string from;
    for (std::int64_t e : builder_.shape(x)) {
      if (!from.empty()) from += ", ";
      const std::int64_t n = rng_.between(1, 5);
      const std::string label = letter(extents.size());
      extents.push_back(n);
      if (rng_.chance(0.3)) {
        Tensor index(TensorType{DType::i64, {n}});
        for (std::int64_t i = 0; i < n; ++i) index.set(i, static_cast<double>(rng_.between(-1, e)));
        from += "#" + std::to_string(operands.size()) + "[" + label + "]";
        operands.push_back(builder_.constant(std::move(index)));
      } else {
        from += std::to_string(rng_.between(1, 2)) + "*" + label + "+" + std::to_string(rng_.below(3));
      }
    }
    return builder_.emit(find_op("gather"), operands, {{"extents", extents}, {"from", from}});
  }
  /// Axis by axis at 2a+1 or a, or along a diagonal; sometimes onto a base.
  Value scatter(Value x) {
    const Shape extents = builder_.shape(x);
    Integers axes;
    Shape shape;
    std::string to;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      axes.push_back(static_cast<std::int64_t>(axis));
      const bool is_spread = rng_.chance(0.4);
      to += (axis ? ", " : "") + (is_spread ? "2*" + letter(axis) + "+1" : letter(axis));
      shape.push_back(is_spread ? 2 * extents[axis] + 1 : extents[axis]);
    }
    if (!extents.empty() && rng_.chance(0.3)) {
      to += ", " + letter(0);
      shape.push_back(extents[0]);
    }
    Attributes attributes{{"extents", extents}, {"axes", axes}, {"shape", shape}, {"to", to}};
    if (element_count(shape) > 40000) return emit("neg", {x});
    const Value plain = builder_.emit(find_op("scatter"), {x}, attributes);
    if (rng_.chance(0.5)) return plain;
    attributes.set("base", std::int64_t{1});
    const Value base = rng_.chance(0.5) ? plain : emit("add", {plain, builder_.scalar(1, dtype_)});
    return emit("scatter", {x, base}, attributes);
  }

  Value reduction() {
    const Value x = pick();
    Integers axes;
    for (std::size_t axis = 0; axis < builder_.shape(x).size(); ++axis)
      if (rng_.chance(0.5)) axes.push_back(static_cast<std::int64_t>(axis));
    const Attributes attributes{{"axes", axes}};
    const std::int64_t kind = rng_.below(4);
    if (kind >= 2) return emit("reduce_sum", {bounded(x)}, attributes);
    // The extremes of nothing are infinite.
    return bounded(emit(kind == 0 ? "reduce_max" : "reduce_min", {x}, attributes));
  }

  /// Labels drawn so that extents agree; what the result keeps is drawn too.
  Value contraction() {
    const Value x = pick(), y = rng_.chance(0.3) ? x : pick();
    std::vector<std::int64_t> extents;
    std::string spec = labels(builder_.shape(x), extents) + "," + labels(builder_.shape(y), extents);
    std::int64_t combinations = 1;
    for (std::int64_t e : extents) combinations *= e;
    if (combinations > 200000) return emit("neg", {x});
    std::vector<Value> operands{bounded(x), bounded(y)};
    if (rng_.chance(0.15)) {
      spec += "," + spec.substr(0, spec.find(','));
      operands.push_back(mask_of(x));
    }
    std::string result;
    for (std::size_t label = 0; label < extents.size(); ++label)
      if (rng_.chance(0.5) && result.size() < 3)
        result.insert(rng_.chance(0.5) ? 0 : result.size(), letter(label));
    return builder_.emit(find_op("einsum"), operands, {{"spec", spec + "->" + result}});
  }
  std::string labels(const Shape& shape, std::vector<std::int64_t>& extents) {
    std::string text;
    for (std::int64_t e : shape) {
      std::size_t label = extents.size();
      for (std::size_t known = 0; known < extents.size(); ++known)
        if (extents[known] == e && rng_.chance(0.5)) label = known;
      if (label == extents.size()) extents.push_back(e);
      text += letter(label);
    }
    return text;
  }

  Rng rng_;
  DType dtype_;
  Builder builder_;
  std::vector<Value> values_, masks_;
  std::vector<Tensor> arguments_;
};

inline RandomProgram random_program(std::uint64_t seed, DType dtype, int nodes) {
  return RandomProgramMaker(seed, dtype).make(nodes);
}

}  // namespace loipe
