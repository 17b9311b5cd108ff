// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ir/attributes.h"

namespace loipe {

struct Value;            // ir/program.h
struct ExpandContext;    // ir/builder.h
struct LocalJacobian;    // jacobian/local_jacobian.h
struct JacobianContext;  // jacobian/local_jacobian.h

/// A record member that must be given: leaving it out does not compile.
template <class T>
struct Required {
  T value;
  template <class Given>
    requires std::is_convertible_v<Given, T>
  constexpr Required(Given given) : value(given) {}
  constexpr operator const T&() const { return value; }
};

struct Arity {
  int minimum;
  int maximum;  // kVariadic: any number from minimum on
  static constexpr int kVariadic = -1;
};
inline constexpr Arity kNullary{0, 0}, kUnary{1, 1}, kBinary{2, 2}, kTernary{3, 3};

/// What the shape rule sees. Mistakes are thrown as UserError without the op's
/// name, which the builder puts in front.
struct InferContext {
  std::span<const TensorType* const> operands;
  const Attributes& attributes;
  const TensorType& operand(std::size_t i) const { return *operands[i]; }
};

/// What the reference evaluation sees; it returns a tensor of exactly `type`.
struct EvaluateContext {
  std::span<const Tensor* const> operands;
  const Attributes& attributes;
  const TensorType& type;
  const Tensor& operand(std::size_t i) const { return *operands[i]; }
};

/// Scalar operations of one node. Copies, selections and comparisons are free.
struct OpCost {
  std::int64_t multiplications = 0;
  std::int64_t additions = 0;
  std::int64_t divisions = 0;
  std::int64_t functions = 0;  ///< exp, sin, sqrt, pow, ...

  OpCost& operator+=(const OpCost& other) {
    multiplications += other.multiplications;
    additions += other.additions;
    divisions += other.divisions;
    functions += other.functions;
    return *this;
  }
  std::int64_t total() const { return multiplications + additions + divisions + functions; }
  bool operator==(const OpCost&) const = default;
};

struct CostContext {
  std::span<const TensorType* const> operands;
  const Attributes& attributes;
  const TensorType& type;
  const TensorType& operand(std::size_t i) const { return *operands[i]; }
};

/// The local Jacobian by one floating operand, or the reason why there is none.
struct Differentiation {
  using Rule = LocalJacobian (*)(JacobianContext&);
  template <class Given>
    requires std::is_convertible_v<Given, Rule>
  constexpr Differentiation(Given given) : rule(given) {}
  static constexpr Differentiation none(std::string_view reason) { return Differentiation(reason); }

  Rule rule = nullptr;
  std::string_view why_not;

 private:
  constexpr explicit Differentiation(std::string_view reason) : why_not(reason) {}
};

/// A call to test an op with: operands and attributes.
struct Sample {
  std::vector<Tensor> operands;
  Attributes attributes;
};
/// Valid calls at regular points, in f64 where floating; the laws are tested on
/// them for every op (shapes of several ranks, extents 1 and 0 included).
using SampleFn = std::vector<Sample> (*)(Rng&);

/// Relative error that a derivative or a back end may show, in units of the dtype's epsilon.
enum class Tolerance { exact, arithmetic, function };

/// Everything that Loipe knows about an op, in one place. A new op is one such
/// record and one line in ops/op_list.def.
struct OpDef {
  Required<std::string_view> name;
  Required<std::string_view> summary;
  Required<Arity> arity;
  /// Result type from operand types and attributes.
  Required<TensorType (*)(const InferContext&)> infer;
  /// The naive, trusted evaluation.
  Required<Tensor (*)(const EvaluateContext&)> evaluate;
  Required<Differentiation> jacobian;
  Required<OpCost (*)(const CostContext&)> cost;
  Required<SampleFn> samples;
  Required<Tolerance> tolerance;
  /// Points where the derivative is a convention: ties, kinks, domain ends.
  SampleFn special_points = nullptr;
  std::string_view jax_name = {};
  std::string_view onnx_name = {};
  /// The op written in others, for back ends that have a kernel for each of those but none
  /// for this one: the same value up to rounding, at special points too, and no dearer. The
  /// pass `expansion` applies it; null: the op stays one node.
  Value (*expand)(const ExpandContext&) = nullptr;
};

// The list of ops, defined in ops/op_list.cc. Named here so that programs can be
// parsed and built without this layer knowing any single op.
std::span<const OpDef* const> all_ops();
/// The op of that name; UserError that suggests the nearest name otherwise.
const OpDef& find_op(std::string_view name);
const OpDef& argument_op();
const OpDef& constant_op();

}  // namespace loipe
