// SPDX-License-Identifier: Apache-2.0
#include "passes/constant_folding/constant_folding.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ir/interpreter.h"
#include "ops/op_list.h"
#include "passes/rebuild.h"

namespace loipe::passes {

namespace {

constexpr std::int64_t kMostElements = 4096;
constexpr std::int64_t kMostOperations = 1 << 20;
constexpr std::size_t kMostCompactTensors = 64;  // kept at a time

bool is_compact(const Program& program, Value v) {
  if (&program.op(v) == &ops::op_iota) return true;
  return &program.op(v) == &ops::op_broadcast_in_dim && is_constant(program, program.operands(v)[0]);
}

/// Upper bound of the scalar steps of an evaluation, beyond one per operand and
/// result element: the arithmetic, and the index space of gather and scatter.
std::int64_t operations(const Program& program, Value v) {
  std::vector<const TensorType*> operands;
  for (Value operand : program.operands(v)) operands.push_back(&program.type(operand));
  const Attributes& attributes = program.attributes(v);
  const std::int64_t steps = attributes.has("extents") ? element_count(attributes.integers("extents")) : 0;
  return std::max(steps, program.op(v).cost.value({operands, attributes, program.type(v)}).total());
}

bool is_uniform(const Tensor& tensor) {
  const std::size_t size = size_of(tensor.dtype());
  const std::span<const std::byte> bytes = tensor.bytes();
  // Each element equals the one before it.
  return bytes.size() > size && std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

class Folder {
 public:
  explicit Folder(const Program& program) : rebuild_(program) {}

  Program run() {
    for (std::uint32_t i = 0; i < rebuild_.source().size(); ++i) visit(Value{i});
    return rebuild_.finish();
  }

 private:
  void visit(Value old) {
    if (folds(old)) rebuild_.replace(old, folded(old));
    else rebuild_.copy(old);
  }

  bool folds(Value old) {
    const Program& source = rebuild_.source();
    if (is_argument(source, old) || is_constant(source, old)) return false;
    if (source.type(old).element_count() > kMostElements) return false;
    const std::span<const Value> operands = rebuild_.operands_of(old);
    const bool all_known = std::ranges::all_of(operands, [&](Value v) { return is_known(v); });
    if (!all_known || &source.op(old) == &ops::op_iota) return false;
    const bool broadcasts_constant =
        &source.op(old) == &ops::op_broadcast_in_dim && is_constant(rebuild_.target(), operands[0]);
    return !broadcasts_constant && operations(source, old) <= kMostOperations;
  }

  bool is_known(Value v) const {
    const Program& target = rebuild_.target();
    return target.type(v).element_count() <= kMostElements &&
           (is_constant(target, v) || is_compact(target, v));
  }

  Value folded(Value old) {
    if (compact_.size() > kMostCompactTensors) compact_.clear();
    std::vector<const Tensor*> operands;
    for (Value operand : rebuild_.operands_of(old)) operands.push_back(&tensor_of(operand));
    Tensor result = evaluate_node(rebuild_.source(), old, operands);
    if (result.shape().empty() || !is_uniform(result)) return rebuild_.constant(std::move(result));
    const Shape shape = result.shape();
    Tensor number(TensorType{result.dtype(), {}});
    std::ranges::copy(result.bytes().first(size_of(result.dtype())), number.bytes().begin());
    return rebuild_.emit(ops::op_broadcast_in_dim, {rebuild_.constant(std::move(number))},
                         {{"shape", shape}, {"dimensions", Integers{}}});
  }

  /// The elements of a known value of the new program.
  const Tensor& tensor_of(Value v) {
    const Program& target = rebuild_.target();
    if (is_constant(target, v)) return target.attributes(v).tensor("value");
    const auto [place, is_new] = compact_.try_emplace(v.index);
    if (is_new) {
      std::vector<const Tensor*> operands;
      for (Value operand : target.operands(v))
        operands.push_back(&target.attributes(operand).tensor("value"));
      place->second = evaluate_node(target, v, operands);
    }
    return place->second;
  }

  Rebuild rebuild_;
  /// Elements of compact values that were needed lately; pointers to them survive insertion.
  std::unordered_map<std::uint32_t, Tensor> compact_;
};

}  // namespace

Program constant_folding(const Program& program) { return Folder(program).run(); }

}  // namespace loipe::passes
