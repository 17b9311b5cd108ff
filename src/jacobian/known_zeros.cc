// SPDX-License-Identifier: Apache-2.0
#include "jacobian/known_zeros.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "ir/op_def.h"

namespace loipe {

namespace {

/// Larger values, and those that take more operations, are taken to have no known zeros:
/// finding them is not to cost more than a run.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
constexpr std::int64_t kMostOperations = std::int64_t{1} << 26;

/// How the support of a result follows from those of the operands.
enum class Rule : std::uint8_t {
  unknown,  ///< all elements can differ from zero
  own,      ///< the op itself, applied to 0 and 1: products, sums of products, moves
  first,    ///< that of the first operand, broadcast
  any,      ///< where any floating operand can
  branches  ///< where any branch of a select can
};

Rule rule_of(std::string_view op) {
  static const std::set<std::string_view> own{"broadcast_in_dim", "concatenate", "dot_general", "einsum",
                                              "gather",           "mul",         "pad",         "reduce_sum",
                                              "reshape",          "scatter",     "slice",       "transpose"};
  if (own.contains(op)) return Rule::own;
  if (op == "neg" || op == "convert_element_type" || op == "div") return Rule::first;
  if (op == "add" || op == "sub") return Rule::any;
  if (op == "select") return Rule::branches;
  return Rule::unknown;
}

Tensor ones(const Shape& shape) {
  Tensor tensor(TensorType{DType::f64, shape});
  std::ranges::fill(tensor.elements<double>(), 1.0);
  return tensor;
}

/// Applies an op to 0 and 1.
Tensor applied(const OpDef& op, std::vector<const Tensor*> operands, const Attributes& attributes,
               const Shape& shape) {
  return op.evaluate.value({operands, attributes, TensorType{DType::f64, shape}});
}

/// Sums and counts become 1; null when there is no zero.
std::shared_ptr<const Tensor> as_support(Tensor tensor) {
  const std::span<double> elements = tensor.elements<double>();
  if (std::ranges::find(elements, 0.0) == elements.end()) return nullptr;
  for (double& element : elements) element = element != 0;
  return std::make_shared<const Tensor>(std::move(tensor));
}

const Tensor* constant_of(const Program& program, Value v) {
  if (&program.op(v) != &constant_op()) return nullptr;
  return &program.attributes(v).tensor("value");
}

/// The support of one node, its operands' being known.
class NodeSupport {
 public:
  using Supports = std::vector<std::shared_ptr<const Tensor>>;

  NodeSupport(const Program& program, Value node, const Supports& supports)
      : program_(program), node_(node), supports_(supports), operands_(program.operands(node)) {}

  std::shared_ptr<const Tensor> operator()() {
    const Rule rule = rule_of(program_.op(node_).name.value);
    if (rule == Rule::unknown || !has_zeros() || operations() > kMostOperations || !collect()) return nullptr;
    switch (rule) {
      case Rule::own: return as_support(applied(program_.op(node_), given_, attributes(), shape()));
      case Rule::first: return as_support(broadcast(*given_[0]));
      case Rule::any: return as_support(either(*given_[0], *given_[1]));
      case Rule::branches: return as_support(either(*given_[1], *given_[2]));
      case Rule::unknown: break;
    }
    return nullptr;
  }

 private:
  const Shape& shape() const { return program_.shape(node_); }
  const Attributes& attributes() const { return program_.attributes(node_); }

  bool has_zeros() const {
    return std::ranges::any_of(operands_, [&](Value v) { return supports_[v.index] != nullptr; });
  }

  std::int64_t operations() const {
    std::vector<const TensorType*> types;
    for (Value operand : operands_) types.push_back(&program_.type(operand));
    return program_.op(node_).cost.value({types, attributes(), program_.type(node_)}).total();
  }

  /// Floating operands by their support, bool ones as true, integers by their value: then
  /// it must be known.
  bool collect() {
    made_.reserve(operands_.size());
    for (Value operand : operands_) {
      const TensorType& type = program_.type(operand);
      if (type.element_count() > kMostElements) return false;
      if (supports_[operand.index]) {
        given_.push_back(supports_[operand.index].get());
      } else if (is_floating(type.dtype)) {
        given_.push_back(&made_.emplace_back(ones(type.shape)));
      } else if (type.dtype == DType::boolean) {
        given_.push_back(&made_.emplace_back(ones(type.shape).converted(DType::boolean)));
      } else if (const Tensor* constant = constant_of(program_, operand)) {
        given_.push_back(constant);
      } else {
        return false;
      }
    }
    return true;
  }

  Tensor broadcast(const Tensor& support) const {
    const Tensor whole = ones(shape());
    return applied(find_op("mul"), {&support, &whole}, {}, shape());
  }
  Tensor either(const Tensor& a, const Tensor& b) const {
    const Tensor x = broadcast(a), y = broadcast(b);
    return applied(find_op("add"), {&x, &y}, {}, shape());
  }

  const Program& program_;
  Value node_;
  const Supports& supports_;
  std::span<const Value> operands_;
  std::vector<Tensor> made_;
  std::vector<const Tensor*> given_;
};

}  // namespace

KnownZeros::KnownZeros(const Program& program) : supports_(program.size()) {
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value node{i};
    const TensorType& type = program.type(node);
    if (!is_floating(type.dtype) || type.element_count() > kMostElements) continue;
    if (const Tensor* constant = constant_of(program, node))
      supports_[i] = as_support(constant->converted(DType::f64));
    else supports_[i] = NodeSupport(program, node, supports_)();
  }
}

}  // namespace loipe
