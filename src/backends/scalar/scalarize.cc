// SPDX-License-Identifier: Apache-2.0
#include "backends/scalar/scalarize.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"
#include "ir/op_def.h"
#include "jacobian/coordinate.h"
#include "ops/recorded/einsum_spec.h"

namespace loipe::scalar {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// The scalar op of each elementwise tensor op.
const std::unordered_map<std::string_view, Op>& elementwise_ops() {
  static const auto* table = [] {
    auto* ops = new std::unordered_map<std::string_view, Op>();
    for (std::size_t i = 0; i < kOpCount; ++i)
      if (const std::string_view text = name(static_cast<Op>(i)); !text.empty())
        ops->emplace(text, static_cast<Op>(i));
    return ops;
  }();
  return *table;
}

/// Ops that only move elements: their evaluation on element numbers says where to.
bool is_movement(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "broadcast_in_dim", "concatenate", "gather", "pad", "reshape", "slice", "stop_gradient", "transpose"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

bool is_supported(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "argument", "constant",   "convert_element_type", "dot_general", "einsum", "integer_pow", "iota",
      "logistic", "reduce_max", "reduce_min",           "reduce_sum",  "rsqrt",  "scatter",     "sign"};
  return is_movement(op) || elementwise_ops().contains(op) || std::ranges::find(kOps, op) != std::end(kOps);
}

/// Turns nodes into lists of scalar ids, one per element.
class Scalarizer {
 public:
  Scalarizer(const loipe::Program& program, DType dtype)
      : source_(program), builder_(dtype), ids_(program.size()) {}

  Program run() {
    const std::vector<std::uint32_t> last_use = last_uses();
    for (std::size_t i = 0; i < source_.arguments().size(); ++i) bind_argument(static_cast<std::uint32_t>(i));
    for (std::uint32_t i = 0; i < source_.size(); ++i) {
      node_ = loipe::Value{i};
      if (&source_.op(node_) != &argument_op()) ids_[i] = lower();
      require(static_cast<std::int64_t>(builder_.program().nodes.size()) <= kLargestProgram,
              "a program grew past the limit for straight-line code");
      for (loipe::Value operand : source_.operands(node_))
        if (last_use[operand.index] == i) std::vector<Id>().swap(ids_[operand.index]);
    }
    Program& result = builder_.program();
    for (std::size_t k = 0; k < source_.outputs().size(); ++k) {
      result.outputs.push_back(source_.type(source_.outputs()[k]));
      const std::vector<Id>& elements = ids_[source_.outputs()[k].index];
      for (std::size_t e = 0; e < elements.size(); ++e)
        result.stores.push_back({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(e), elements[e]});
    }
    return scheduled(result);
  }

 private:
  std::vector<std::uint32_t> last_uses() const {
    std::vector<std::uint32_t> last(source_.size(), 0);
    for (std::uint32_t i = 0; i < source_.size(); ++i)
      for (loipe::Value operand : source_.operands(loipe::Value{i})) last[operand.index] = i;
    for (loipe::Value output : source_.outputs()) last[output.index] = ~std::uint32_t{0};
    return last;
  }

  void bind_argument(std::uint32_t position) {
    const loipe::Value argument = source_.arguments()[position];
    const TensorType& type = source_.type(argument);
    builder_.program().arguments.push_back(type);
    for (std::int64_t e = 0; e < type.element_count(); ++e)
      ids_[argument.index].push_back(builder_.argument(position, static_cast<std::uint32_t>(e)));
  }

  const std::vector<Id>& operand(std::size_t k) const { return ids_[source_.operands(node_)[k].index]; }
  const Shape& operand_shape(std::size_t k) const { return source_.shape(source_.operands(node_)[k]); }
  const Attributes& attributes() const { return source_.attributes(node_); }
  const TensorType& type() const { return source_.type(node_); }

  std::vector<Id> lower() {
    const std::string_view op = source_.op(node_).name.value;
    if (op == "constant") return constants(attributes().tensor("value"));
    if (op == "iota") return constants(evaluated({}));
    if (op == "convert_element_type") return converted();
    if (op == "scatter") return scattered();
    if (op == "einsum" || op == "dot_general") return contracted(op);
    if (op == "reduce_sum") return reduced(Op::add, 0);
    if (op == "reduce_max") return reduced(Op::max, -std::numeric_limits<double>::infinity());
    if (op == "reduce_min") return reduced(Op::min, std::numeric_limits<double>::infinity());
    if (is_movement(op)) return moved();
    return elementwise(op);
  }

  std::vector<Id> constants(const Tensor& tensor) {
    std::vector<Id> result;
    for (std::int64_t e = 0; e < tensor.element_count(); ++e)
      result.push_back(builder_.constant(tensor.at(e)));
    return result;
  }

  Tensor evaluated(const std::vector<const Tensor*>& operands) const {
    const OpDef& op = source_.op(node_);
    TensorType result = type();
    result.dtype = operands.empty() ? result.dtype : operands[0]->dtype();
    return op.evaluate.value({operands, attributes(), result});
  }

  /// The op's own evaluation applied to element numbers 1, 2, ... of all operands; 0 is
  /// what gather reads outside its operand.
  std::vector<Id> moved() {
    std::vector<Tensor> numbers;
    std::vector<Id> flat;
    const bool has_indices = source_.op(node_).name.value == "gather";
    for (std::size_t k = 0; k < source_.operands(node_).size(); ++k) {
      if (has_indices && k > 0) {
        numbers.push_back(index_constant(k));
        continue;
      }
      Tensor tensor(TensorType{DType::i64, operand_shape(k)});
      for (std::int64_t e = 0; e < tensor.element_count(); ++e) {
        flat.push_back(operand(k)[size(e)]);
        tensor.set(e, static_cast<double>(flat.size()));
      }
      numbers.push_back(std::move(tensor));
    }
    std::vector<const Tensor*> operands;
    for (const Tensor& tensor : numbers) operands.push_back(&tensor);
    const Tensor places = evaluated(operands);
    std::vector<Id> result;
    for (std::int64_t e = 0; e < places.element_count(); ++e) {
      const auto place = static_cast<std::size_t>(places.at(e));
      result.push_back(place == 0 ? builder_.constant(0) : flat[place - 1]);
    }
    return result;
  }

  Tensor index_constant(std::size_t k) const {
    Tensor tensor(TensorType{DType::i64, operand_shape(k)});
    for (std::int64_t e = 0; e < tensor.element_count(); ++e)
      tensor.set(e, builder_.constant_value(operand(k)[size(e)]).value());
    return tensor;
  }

  std::vector<Id> converted() {
    std::vector<Id> result = operand(0);
    if (type().dtype == DType::boolean && source_.type(source_.operands(node_)[0]).dtype != DType::boolean)
      for (Id& id : result) id = builder_.emit(Op::ne, id, builder_.constant(0));
    return result;  // a truth value is the number 0 or 1
  }

  std::vector<Id> scattered() {
    const Integers& extents = attributes().integers("extents");
    const Integers& axes = attributes().integers("axes");
    const std::vector<Coordinate> to = parse_coordinates(attributes().text("to"));
    const bool has_base = attributes().has("base");
    std::vector<Id> result =
        has_base ? operand(1) : std::vector<Id>(size(type().element_count()), builder_.constant(0));
    std::vector<Label> labels;
    for (std::size_t i = 0; i < extents.size(); ++i) labels.push_back(static_cast<Label>(i));
    for_each_assignment(labels, extents, [&](std::span<const std::int64_t> at) {
      std::int64_t source = 0, target = 0;
      for (std::int64_t axis : axes) source = source * extents[size(axis)] + at[size(axis)];
      for (std::size_t axis = 0; axis < to.size(); ++axis) {
        const std::int64_t p = position_along(to[axis], at, extents);
        if (p < 0 || p >= type().shape[axis]) return;
        target = target * type().shape[axis] + p;
      }
      Id& element = result[size(target)];
      element = builder_.emit(Op::add, element, operand(0)[size(source)]);
    });
    return result;
  }

  std::int64_t position_along(const Coordinate& c, std::span<const std::int64_t> at,
                              const Integers& extents) const {
    if (!c.index) return position(c, at, extents);
    std::int64_t row = 0;
    for (Label label : c.index->labels) row = row * extents[label] + at[label];
    return static_cast<std::int64_t>(
        builder_.constant_value(operand(c.index->value.index)[size(row)]).value());
  }

  std::string dot_general_spec() const {
    const auto list = [&](const char* name) {
      return attributes().has(name) ? attributes().integers(name) : Integers{};
    };
    const Integers lc = list("lhs_contract"), rc = list("rhs_contract"), lb = list("lhs_batch"),
                   rb = list("rhs_batch");
    char next = 'a';
    std::string lhs(operand_shape(0).size(), ' '), rhs(operand_shape(1).size(), ' '), result;
    for (std::size_t i = 0; i < lb.size(); ++i) result += lhs[size(lb[i])] = rhs[size(rb[i])] = next++;
    for (std::size_t i = 0; i < lc.size(); ++i) lhs[size(lc[i])] = rhs[size(rc[i])] = next++;
    for (std::string* labels : {&lhs, &rhs})
      for (char& label : *labels)
        if (label == ' ') result += label = next++;
    return lhs + "," + rhs + "->" + result;
  }

  std::vector<Id> contracted(std::string_view op) {
    std::vector<const TensorType*> types;
    for (loipe::Value v : source_.operands(node_)) types.push_back(&source_.type(v));
    const EinsumPlan plan(op == "einsum" ? attributes().text("spec") : dot_general_spec(), types);
    auto element = [&](std::size_t k, const std::vector<Label>& labels, std::span<const std::int64_t> at) {
      std::int64_t row = 0;
      for (Label label : labels) row = row * plan.extents[label] + at[label];
      return k == kResult ? static_cast<Id>(row) : operand(k)[size(row)];
    };
    std::vector<Id> result(size(type().element_count()), builder_.constant(0));
    for_each_assignment(plan.labels, plan.extents, [&](std::span<const std::int64_t> at) {
      std::optional<Id> product;
      for (std::size_t k : plan.factors) {
        const Id factor = element(k, plan.spec.operands[k], at);
        product = product ? builder_.emit(Op::mul, *product, factor) : factor;
      }
      Id term = *product;
      for (std::size_t k : plan.masks)
        term = builder_.emit(Op::select, element(k, plan.spec.operands[k], at), term, builder_.constant(0));
      Id& sum = result[element(kResult, plan.spec.result, at)];
      sum = builder_.emit(Op::add, sum, term);
    });
    return result;
  }

  std::vector<Id> reduced(Op op, double start) {
    const Shape& shape = operand_shape(0);
    const Integers& axes = attributes().integers("axes");
    std::vector<Id> result(size(type().element_count()), builder_.constant(start));
    std::vector<bool> is_first(result.size(), true);
    std::vector<Label> labels, kept;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      labels.push_back(static_cast<Label>(axis));
      if (std::ranges::find(axes, static_cast<std::int64_t>(axis)) == axes.end())
        kept.push_back(labels.back());
    }
    std::size_t next = 0;
    for_each_assignment(labels, shape, [&](std::span<const std::int64_t> at) {
      std::int64_t row = 0;
      for (Label label : kept) row = row * shape[label] + at[label];
      Id& value = result[size(row)];
      const Id element = operand(0)[next++];
      value = is_first[size(row)] ? element : builder_.emit(op, value, element);
      is_first[size(row)] = false;
    });
    return result;
  }

  std::vector<Id> elementwise(std::string_view op) {
    const auto& shape = type().shape;
    std::vector<std::vector<std::int64_t>> strides;
    for (std::size_t k = 0; k < source_.operands(node_).size(); ++k) {
      std::vector<std::int64_t> own(shape.size(), 0);
      std::int64_t step = 1;
      for (std::size_t axis = operand_shape(k).size(); axis-- > 0;) {
        own[axis] = operand_shape(k)[axis] == 1 ? 0 : step;
        step *= operand_shape(k)[axis];
      }
      strides.push_back(std::move(own));
    }
    std::vector<Label> labels;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) labels.push_back(static_cast<Label>(axis));
    std::vector<Id> result;
    for_each_assignment(labels, shape, [&](std::span<const std::int64_t> at) {
      std::array<Id, 3> x{};
      for (std::size_t k = 0; k < strides.size(); ++k) {
        std::int64_t row = 0;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) row += strides[k][axis] * at[axis];
        x[k] = operand(k)[size(row)];
      }
      result.push_back(element(op, x));
    });
    return result;
  }

  Id element(std::string_view op, const std::array<Id, 3>& x) {
    const Id one = builder_.constant(1), zero = builder_.constant(0);
    if (op == "integer_pow") return power(x[0], attributes().integer("y"));
    if (op == "rsqrt") return builder_.emit(Op::div, one, builder_.emit(Op::sqrt, x[0]));
    if (op == "logistic")
      return builder_.emit(Op::div, one,
                           builder_.emit(Op::add, one, builder_.emit(Op::exp, builder_.emit(Op::neg, x[0]))));
    if (op == "sign") {
      const Id negative =
          builder_.emit(Op::select, builder_.emit(Op::lt, x[0], zero), builder_.constant(-1), x[0]);
      return builder_.emit(Op::select, builder_.emit(Op::gt, x[0], zero), one, negative);
    }
    return builder_.emit(elementwise_ops().at(op), x[0], x[1], x[2]);
  }

  /// x^n by squaring; the products that powers share are one node.
  Id power(Id x, std::int64_t n) {
    if (n < 0) return builder_.emit(Op::div, builder_.constant(1), power(x, -n));
    std::optional<Id> result;
    for (Id square = x; n > 0; n /= 2) {
      if (n % 2 != 0) result = result ? builder_.emit(Op::mul, *result, square) : square;
      if (n > 1) square = builder_.emit(Op::mul, square, square);
    }
    return result ? *result : builder_.constant(1);
  }

  static constexpr std::size_t kResult = ~std::size_t{0};
  const loipe::Program& source_;
  Builder builder_;
  std::vector<std::vector<Id>> ids_;
  loipe::Value node_;
};

DType floating_dtype(const loipe::Program& program) {
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (is_floating(program.type(loipe::Value{i}).dtype)) return program.type(loipe::Value{i}).dtype;
  return DType::f64;
}

/// Whether the value is known before the run.
std::vector<bool> static_values(const loipe::Program& program) {
  std::vector<bool> is_static(program.size());
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    is_static[i] = &program.op(loipe::Value{i}) != &argument_op();
    for (loipe::Value operand : program.operands(loipe::Value{i}))
      is_static[i] = is_static[i] && is_static[operand.index];
  }
  return is_static;
}

std::int64_t operation_count(const loipe::Program& program, loipe::Value v) {
  std::vector<const TensorType*> operands;
  for (loipe::Value operand : program.operands(v)) operands.push_back(&program.type(operand));
  return program.op(v).cost.value({operands, program.attributes(v), program.type(v)}).total();
}

}  // namespace

std::vector<std::string> reasons_against(const loipe::Program& program, std::int64_t largest) {
  std::vector<std::string> reasons;
  const DType dtype = floating_dtype(program);
  const std::vector<bool> is_static = static_values(program);
  std::int64_t elements = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const loipe::Value v{i};
    const TensorType& type = program.type(v);
    const std::string op(program.op(v).name.value);
    elements += type.element_count() + operation_count(program, v);
    if (!is_supported(op)) reasons.push_back("op '" + op + "' has no scalar form");
    if (is_floating(type.dtype) && type.dtype != dtype) reasons.push_back("it mixes f32 and f64");
    // Scalars here are floating; constant folding has left no other static integers.
    if (is_integer(type.dtype) && is_static[i] && op != "constant" && op != "iota" && !is_movement(op))
      reasons.push_back("it computes with integers");
    if (is_integer(type.dtype) && !is_static[i])
      reasons.push_back("it computes with integers known only at run time");
    if (elements > largest) {
      reasons.push_back("it has more than " + std::to_string(largest) + " elements and operations");
      break;
    }
    if (reasons.size() > 5) break;
  }
  for (loipe::Value output : program.outputs())
    if (program.type(output).dtype != dtype)
      reasons.push_back("an output is not " + std::string(to_string(dtype)));
  for (loipe::Value argument : program.arguments())
    if (program.type(argument).dtype != dtype)
      reasons.push_back("an argument is not " + std::string(to_string(dtype)));
  return reasons;
}

Program scalarize(const loipe::Program& program) {
  return Scalarizer(program, floating_dtype(program)).run();
}

}  // namespace loipe::scalar
