// SPDX-License-Identifier: Apache-2.0
#include "passes/reciprocals/reciprocals.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "ops/op_list.h"
#include "passes/common_subexpressions/common_subexpressions.h"
#include "passes/rebuild.h"
#include "passes/uniform_values.h"
#include "tensor/visit.h"

namespace loipe::passes {

namespace {

bool is_floating_division(const Program& program, Value v) {
  return &program.op(v) == &ops::op_div && is_floating(program.type(v).dtype);
}

/// The value that is broadcast to the divisor, or the divisor itself.
Value origin_of(const Program& program, Value divisor) {
  return &program.op(divisor) == &ops::op_broadcast_in_dim ? program.operands(divisor)[0] : divisor;
}

/// For each node, how many numbers it divides in nodes that outputs need.
std::vector<std::int64_t> count_divisions(const Program& program) {
  const std::vector<bool> is_live = live_nodes(program);
  std::vector<std::int64_t> counts(program.size(), 0);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (is_live[i] && is_floating_division(program, Value{i}))
      counts[origin_of(program, program.operands(Value{i})[1]).index] +=
          program.type(Value{i}).element_count();
  return counts;
}

/// A constant of powers of two with normal reciprocals, which are exact.
bool has_exact_reciprocals(const Tensor& tensor) {
  return visit_floating(tensor.dtype(), [&]<class T>(T) {
    for (T y : tensor.elements<T>()) {
      int exponent;
      if (std::abs(std::frexp(y, &exponent)) != T(0.5) || !std::isnormal(1 / y)) return false;
    }
    return true;
  });
}

Tensor inverted(Tensor tensor) {
  visit_floating(tensor.dtype(), [&]<class T>(T) {
    for (T& y : tensor.elements<T>()) y = 1 / y;
  });
  return tensor;
}

class Inverter {
 public:
  explicit Inverter(const Program& program) : rebuild_(program), divisions_(count_divisions(program)) {}

  Program run() {
    const Program& source = rebuild_.source();
    for (std::uint32_t i = 0; i < source.size(); ++i) {
      const Value old{i};
      if (is_floating_division(source, old) && is_inverted(origin_of(source, source.operands(old)[1])))
        rebuild_.replace(old, quotient(old));
      else rebuild_.copy(old);
    }
    const bool is_changed = !reciprocals_.empty();
    Program result = rebuild_.finish();
    return is_changed ? common_subexpressions(result) : result;
  }

 private:
  bool is_inverted(Value origin) const {
    const Program& source = rebuild_.source();
    const std::int64_t count = source.type(origin).element_count();
    if (count > 0 && divisions_[origin.index] >= 2 * count) return true;
    return divisions_[origin.index] > 0 && is_constant(source, origin) &&
           has_exact_reciprocals(source.attributes(origin).tensor("value"));
  }

  /// x * (1/y), or 1/y alone for x = 1.
  Value quotient(Value old) {
    const Program& source = rebuild_.source();
    const Value x = source.operands(old)[0], y = source.operands(old)[1];
    const Value reciprocal = reciprocal_of_divisor(y);
    if (uniform_.of(source, x) != 1) return rebuild_.emit(ops::op_mul, {rebuild_.of(x), reciprocal});
    if (source.shape(old) == source.shape(y)) return reciprocal;
    Integers dimensions(source.shape(y).size());
    std::iota(dimensions.begin(), dimensions.end(), std::int64_t{0});
    return rebuild_.emit(ops::op_broadcast_in_dim, {reciprocal},
                         {{"shape", source.shape(old)}, {"dimensions", dimensions}});
  }

  Value reciprocal_of_divisor(Value y) {
    const Program& source = rebuild_.source();
    const Value origin = origin_of(source, y), reciprocal = reciprocal_of(origin);
    if (origin == y) return reciprocal;
    const auto [place, is_new] = reciprocals_.try_emplace(y.index, Value{});
    if (is_new) place->second = rebuild_.emit(source.op(y), {reciprocal}, source.attributes(y));
    return place->second;
  }

  Value reciprocal_of(Value origin) {
    const Program& source = rebuild_.source();
    const auto [place, is_new] = reciprocals_.try_emplace(origin.index, Value{});
    if (!is_new) return place->second;
    const TensorType& type = source.type(origin);
    if (!is_constant(source, origin))
      return place->second =
                 rebuild_.emit(ops::op_div, {rebuild_.scalar(1, type.dtype), rebuild_.of(origin)});
    Tensor value = inverted(source.attributes(origin).tensor("value"));
    return place->second = type.shape.empty() ? rebuild_.scalar(value.at(0), type.dtype)
                                              : rebuild_.constant(std::move(value));
  }

  Rebuild rebuild_;
  std::vector<std::int64_t> divisions_;                   // of each source node
  UniformValues uniform_;                                 // of the source
  std::unordered_map<std::uint32_t, Value> reciprocals_;  // of source nodes
};

}  // namespace

Program reciprocals(const Program& program) { return Inverter(program).run(); }

}  // namespace loipe::passes
