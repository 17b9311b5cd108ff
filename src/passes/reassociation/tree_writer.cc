// SPDX-License-Identifier: Apache-2.0
#include "passes/reassociation/tree_writer.h"

#include <algorithm>
#include <bit>

#include "ops/op_list.h"
#include "ops/recorded/einsum_spec.h"

namespace loipe::passes {

namespace {

using Factor = ProductTerm::Factor;
using Set = ContractionTree::Set;

class TreeWriter {
 public:
  TreeWriter(Rebuild& rebuild, const ProductTerm& term, const ContractionTree& tree)
      : rebuild_(rebuild), term_(term), tree_(tree) {}

  Value write(const Shape& shape) {
    std::vector<int> present;
    for (int label : term_.result)
      if (label != ProductTerm::kNoLabel && term_.has_label(label)) present.push_back(label);
    const Value value = write(tree_.all(), present);
    if (rebuild_.target().shape(value) == shape) return value;
    if (present.size() == kept_axes(shape).size())
      return rebuild_.emit(ops::op_reshape, {value}, {{"shape", shape}});
    Integers dimensions;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (std::ranges::find(present, term_.result[axis]) != present.end())
        dimensions.push_back(static_cast<std::int64_t>(axis));
    return rebuild_.emit(ops::op_broadcast_in_dim, {value}, {{"shape", shape}, {"dimensions", dimensions}});
  }

 private:
  struct Operand {
    Value value;
    std::vector<int> labels;
  };

  static Shape kept_axes(const Shape& shape) {
    Shape kept;
    std::ranges::copy_if(shape, std::back_inserter(kept), [](std::int64_t extent) { return extent != 1; });
    return kept;
  }

  /// The set's product, its axes in this order.
  Value write(Set set, const std::vector<int>& result) {
    if (std::has_single_bit(set)) {
      const Operand operand = single(set);
      return operand.labels == result ? operand.value : einsum({operand}, result);
    }
    const Set first = tree_.first_part(set);
    return einsum({operand_of(first), operand_of(set ^ first)}, result);
  }

  Operand operand_of(Set set) {
    if (std::has_single_bit(set) && !tree_.is_summed_first(set)) return single(set);
    return {write(set, tree_.open_labels(set)), tree_.open_labels(set)};
  }

  /// A factor without its axes of extent 1.
  Operand single(Set set) {
    const Factor& factor = term_.factors[static_cast<std::size_t>(std::countr_zero(set))];
    std::vector<int> labels = factor.labels;
    std::erase(labels, ProductTerm::kNoLabel);
    Value value = rebuild_.of(factor.base);
    if (labels.size() != factor.labels.size())
      value = rebuild_.emit(ops::op_reshape, {value}, {{"shape", kept_axes(rebuild_.target().shape(value))}});
    return {value, labels};
  }

  Value einsum(const std::vector<Operand>& operands, const std::vector<int>& result) {
    std::vector<int> letters;  // label of each letter
    const auto renamed = [&](const std::vector<int>& labels) {
      std::vector<Label> named;
      for (int label : labels) {
        const auto place = std::ranges::find(letters, label);
        named.push_back(static_cast<Label>(place - letters.begin()));
        if (place == letters.end()) letters.push_back(label);
      }
      return named;
    };
    EinsumSpec spec;
    spec.result = renamed(result);
    std::vector<Value> values;
    for (const Operand& operand : operands) {
      values.push_back(operand.value);
      spec.operands.push_back(renamed(operand.labels));
    }
    return rebuild_.emit(ops::op_einsum, values, {{"spec", spec.print()}});
  }

  Rebuild& rebuild_;
  const ProductTerm& term_;
  const ContractionTree& tree_;
};

}  // namespace

Value write_tree(Rebuild& rebuild, const ProductTerm& term, const ContractionTree& tree, const Shape& shape) {
  return TreeWriter(rebuild, term, tree).write(shape);
}

}  // namespace loipe::passes
