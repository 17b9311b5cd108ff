// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/builder.h"
#include "jacobian/local_jacobian.h"

namespace loipe {

/// Operations that elimination costs by the actual model (design of the cost
/// models: docs/theory/elimination.md): counted from label extents when a product
/// or sum is formed, independently of the recorded nodes.
struct ActualCost {
  std::int64_t multiplications = 0;
  std::int64_t additions = 0;
  bool operator==(const ActualCost&) const = default;
};

/// Writes the arithmetic of products and sums of local Jacobians into a program
/// and keeps the account of the actual cost.
class Recorder {
 public:
  /// `dtype` is that of constants that become values.
  explicit Recorder(Builder& builder, DType dtype = DType::f64) : builder_(builder), dtype_(dtype) {}

  Builder& builder() { return builder_; }
  DType dtype() const { return dtype_; }
  const TensorType& type(Value v) const { return builder_.type(v); }
  const ActualCost& cost() const { return cost_; }
  void count(std::int64_t multiplications, std::int64_t additions) {
    cost_.multiplications += multiplications;
    cost_.additions += additions;
  }

  Value scalar(double value, DType dtype) { return builder_.scalar(value, dtype); }
  Value multiply(Value a, Value b);
  Value add(Value a, Value b);
  Value subtract(Value a, Value b);
  Value negate(Value a);
  Value convert(Value a, DType dtype);
  Value select(Value condition, Value a, Value b);
  Value logical_and(Value a, Value b);
  Value equal(Value a, Value b);
  Value reshape(Value a, const Shape& shape);
  Value broadcast(Value a, const Shape& shape, const Integers& dimensions);
  Value reduce_sum(Value a, const Integers& axes);
  Value full(double value, const Shape& shape, DType dtype);

  /// Sum over all labels that are not in `result` of the product of the values,
  /// where every mask holds. Labels that no operand has must not be in `result`.
  LabelledValue einsum(std::span<const LabelledValue> values, std::span<const LabelledValue> masks,
                       const std::vector<Label>& result);

  /// Reads `source` at one coordinate per axis; the result has the axes `labels`.
  Value gather(Value source, std::span<const Coordinate> at, const std::vector<Label>& labels,
               Extents extents);

  /// A tensor of `shape`, zero (or `base`) but for value[labels] added at `at`.
  /// The value's axes are labels; it is constant along the other `labels`.
  Value scatter(const LabelledValue& value, std::span<const Coordinate> at, const std::vector<Label>& labels,
                Extents extents, const Shape& shape, std::optional<Value> base);

  /// Where the mask holds for any value of its labels beside `kept`: what exists of a sum
  /// over them. The mask itself if it has no others.
  LabelledValue any(const LabelledValue& mask, const std::vector<Label>& kept);

  /// The value with its axes in this order; labels it lacks become axes of extent 1.
  Value aligned(const LabelledValue& value, const std::vector<Label>& labels);

 private:
  Builder& builder_;
  DType dtype_;
  ActualCost cost_;
};

}  // namespace loipe
