// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ir/builder.h"

// Random programs to test passes on.

namespace loipe {

struct RandomProgramOptions {
  std::vector<std::string_view> without = {};  ///< names of ops
  /// Zeros of both signs, infinities and NaN among the arguments and constants.
  bool special_values = false;
};

/// Nodes are the ops' own samples, on earlier values of the same type where there
/// are any, else on arguments and constants, often of one number (1, -1, 0, powers
/// of two). Between them stands what passes look for: signs, moves that do nothing,
/// equal nodes. Outputs may be arguments, constants, and repeated.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed, const RandomProgramOptions& options = {})
      : options_(options), rng_(seed), builder_("random") {
    for (const OpDef* op : all_ops())
      if (op != &argument_op() && allows(op->name)) ops_.push_back(op);
    for (std::int64_t steps = rng_.between(3, 40); steps > 0; --steps) {
      add_sample();
      if (rng_.chance(0.5)) decorate();
    }
    std::vector<Value> outputs;
    for (std::int64_t count = rng_.between(1, 12); count > 0; --count) outputs.push_back(pick(values_));
    outputs.push_back(values_.back());
    program = builder_.finish(outputs);
  }

  Program program;
  std::vector<Tensor> arguments;

 private:
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(rng_.below(static_cast<std::int64_t>(list.size())))];
  }

  void add_sample() {
    const OpDef& op = *pick(ops_);
    const std::vector<Sample> samples = op.samples.value(rng_);
    const Sample& sample = pick(samples);
    std::vector<Value> operands;
    for (const Tensor& tensor : sample.operands) operands.push_back(operand_like(tensor));
    values_.push_back(builder_.emit(op, operands, sample.attributes));
  }

  Value operand_like(const Tensor& tensor) {
    std::vector<Value> fitting;
    for (Value v : values_)
      if (builder_.type(v) == tensor.type()) fitting.push_back(v);
    if (!fitting.empty() && rng_.chance(0.7)) return pick(fitting);
    Value v;
    if (rng_.chance(0.4)) {
      v = builder_.constant(rng_.chance(0.7) ? uniform(tensor.type()) : tensor);
    } else {
      arguments.push_back(tensor);
      for (std::int64_t i = 0; i < tensor.element_count(); ++i)
        if (options_.special_values && rng_.chance(0.5)) arguments.back().set(i, special());
      v = builder_.argument("x" + std::to_string(arguments.size()), tensor.type());
    }
    values_.push_back(v);
    return v;
  }

  double special() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return pick<double>(
        {0.0, -0.0, -0.0, 1.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()});
  }

  Tensor uniform(const TensorType& type) {
    const bool is_special = options_.special_values && rng_.chance(0.3);
    const double number = is_special ? special() : pick<double>({1, -1, 0, 2, 0.5, -4});
    Tensor tensor(type);
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, number);
    return tensor;
  }

  /// A node on any value that a pass might remove, or an equal node.
  void decorate() {
    const Value x = pick(values_);
    const TensorType type = builder_.type(x);
    const bool is_number = type.dtype != DType::boolean;
    Integers axes(type.shape.size());
    for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = static_cast<std::int64_t>(axis);
    switch (rng_.below(8)) {
      case 0: return add(is_number ? "neg" : "not", {x});
      case 1: return add("reshape", {x}, {{"shape", Integers{type.element_count()}}});
      case 2: return add("transpose", {x}, {{"permutation", Integers(axes.rbegin(), axes.rend())}});
      case 3: return add("convert_element_type", {x}, {{"dtype", pick<DType>({type.dtype, DType::f64})}});
      case 4: return add("broadcast_in_dim", {x}, {{"shape", type.shape}, {"dimensions", axes}});
      case 5: return add_almost_neutral(x);
      case 6: return add_einsum(x);
      default: repeat(x);
    }
  }

  void add(std::string_view op, std::initializer_list<Value> operands, const Attributes& attributes = {}) {
    values_.push_back(builder_.emit(op, operands, attributes));
  }

  void add_almost_neutral(Value x) {
    const DType dtype = builder_.type(x).dtype;
    if (dtype == DType::boolean) return add(rng_.chance(0.5) ? "and" : "or", {x, builder_.scalar(1, dtype)});
    const Value number = builder_.scalar(pick<double>({1, -1, 0, -0.0}), dtype);
    const std::string_view op = pick<std::string_view>({"add", "sub", "mul", "rem"});
    if (rng_.chance(0.5)) add(op, {x, number});
    else add(op, {number, x});
  }

  /// x, with its axes in any order, some of them summed, times a vector or nothing.
  void add_einsum(Value x) {
    const std::size_t rank = builder_.shape(x).size();
    if (!is_floating(builder_.type(x).dtype) || !allows("einsum")) return;
    std::string labels = std::string("abcdefgh").substr(0, rank), result = labels;
    for (std::size_t k = 0; k + 1 < rank; ++k)
      if (rng_.chance(0.5)) std::swap(result[k], result[k + 1]);
    if (rng_.chance(0.4)) result = result.substr(0, rank / 2);
    std::vector<Value> operands{x};
    if (rng_.chance(0.5)) {
      const std::string label = rank > 0 ? labels.substr(rank - 1) : "";
      operands.push_back(operand_like(
          uniform({builder_.type(x).dtype, rank > 0 ? Shape{builder_.shape(x).back()} : Shape{}})));
      labels += "," + label;
    }
    values_.push_back(builder_.emit(find_op("einsum"), operands, {{"spec", labels + "->" + result}}));
  }

  bool allows(std::string_view op) const {
    return std::ranges::find(options_.without, op) == options_.without.end();
  }

  /// The node again; operands that may change places do, whether it is a change or not.
  void repeat(Value x) {
    const Program& so_far = builder_.program();
    const OpDef& op = so_far.op(x);
    if (&op == &argument_op() || &op == &constant_op()) return;
    std::vector<Value> operands(so_far.operands(x).begin(), so_far.operands(x).end());
    constexpr std::string_view kSymmetric[] = {"add", "sub", "mul", "div", "eq", "lt", "or", "max"};
    if (std::ranges::find(kSymmetric, op.name.value) != std::end(kSymmetric)) std::ranges::reverse(operands);
    values_.push_back(builder_.emit(op, operands, Attributes(so_far.attributes(x))));
  }

  RandomProgramOptions options_;
  Rng rng_;
  Builder builder_;
  std::vector<const OpDef*> ops_;
  std::vector<Value> values_;
};

}  // namespace loipe
