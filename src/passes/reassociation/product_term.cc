// SPDX-License-Identifier: Apache-2.0
#include "passes/reassociation/product_term.h"

#include <algorithm>
#include <iterator>

#include "ops/op_list.h"
#include "ops/recorded/einsum_spec.h"

namespace loipe::passes {

namespace {

constexpr int kNoLabel = ProductTerm::kNoLabel;

bool contains(const std::vector<int>& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}

/// One label for each axis of the shape.
std::vector<int> labels_of(ProductTerm& term, const Shape& shape) {
  std::vector<int> labels;
  for (std::int64_t extent : shape) labels.push_back(term.new_label(extent));
  return labels;
}

std::optional<ProductTerm> of_einsum(const Program& program, Value node) {
  std::vector<const TensorType*> types;
  for (Value operand : program.operands(node)) types.push_back(&program.type(operand));
  const EinsumPlan plan(program.attributes(node).text("spec"), types);
  // A mask hides terms of this very sum, so that they are not even formed.
  if (!plan.masks.empty()) return std::nullopt;
  ProductTerm term;
  std::vector<int> own(plan.extents.size(), kNoLabel);
  for (Label label : plan.labels) own[label] = term.new_label(plan.extents[label]);
  const auto renamed = [&](const std::vector<Label>& labels) {
    std::vector<int> result;
    for (Label label : labels) result.push_back(own[label]);
    return result;
  };
  term.result = renamed(plan.spec.result);
  for (std::size_t i = 0; i < types.size(); ++i)
    term.factors.push_back({program.operands(node)[i], renamed(plan.spec.operands[i])});
  return term;
}

ProductTerm of_product(const Program& program, Value node) {
  ProductTerm term;
  term.result = labels_of(term, program.shape(node));
  for (Value operand : program.operands(node)) {
    const Shape& shape = program.shape(operand);
    std::vector<int> labels;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      labels.push_back(shape[axis] == 1 ? kNoLabel : term.result[axis]);
    term.factors.push_back({operand, labels});
  }
  return term;
}

ProductTerm of_sum(const Program& program, Value node) {
  ProductTerm term;
  const Value operand = program.operands(node)[0];
  const std::vector<int> labels = labels_of(term, program.shape(operand));
  const Integers& axes = program.attributes(node).integers("axes");
  for (std::size_t axis = 0; axis < labels.size(); ++axis)
    if (std::ranges::find(axes, static_cast<std::int64_t>(axis)) == axes.end())
      term.result.push_back(labels[axis]);
  term.factors.push_back({operand, labels});
  return term;
}

ProductTerm of_transpose(const Program& program, Value node) {
  ProductTerm term;
  const Value operand = program.operands(node)[0];
  const std::vector<int> labels = labels_of(term, program.shape(operand));
  for (std::int64_t axis : program.attributes(node).integers("permutation"))
    term.result.push_back(labels[static_cast<std::size_t>(axis)]);
  term.factors.push_back({operand, labels});
  return term;
}

Shape without_ones(const Shape& shape) {
  Shape kept;
  std::ranges::copy_if(shape, std::back_inserter(kept), [](std::int64_t extent) { return extent != 1; });
  return kept;
}

/// Only axes of extent 1 come and go.
std::optional<ProductTerm> of_reshape(const Program& program, Value node) {
  const Value operand = program.operands(node)[0];
  if (without_ones(program.shape(node)) != without_ones(program.shape(operand))) return std::nullopt;
  ProductTerm term;
  const std::vector<int> labels = labels_of(term, program.shape(operand));
  auto next = labels.begin();
  for (std::int64_t extent : program.shape(node)) {
    if (extent == 1) {
      term.result.push_back(kNoLabel);
      continue;
    }
    while (*next == kNoLabel) ++next;
    term.result.push_back(*next++);
  }
  term.factors.push_back({operand, labels});
  return term;
}

ProductTerm of_broadcast(const Program& program, Value node) {
  ProductTerm term;
  term.result = labels_of(term, program.shape(node));
  const Value operand = program.operands(node)[0];
  const Integers& dimensions = program.attributes(node).integers("dimensions");
  std::vector<int> labels;
  for (std::size_t axis = 0; axis < dimensions.size(); ++axis)
    labels.push_back(program.shape(operand)[axis] == 1
                         ? kNoLabel
                         : term.result[static_cast<std::size_t>(dimensions[axis])]);
  term.factors.push_back({operand, labels});
  return term;
}

std::optional<ProductTerm> any_term(const Program& program, Value node) {
  const OpDef* op = &program.op(node);
  if (op == &ops::op_einsum) return of_einsum(program, node);
  if (op == &ops::op_mul) return of_product(program, node);
  if (op == &ops::op_reduce_sum) return of_sum(program, node);
  if (op == &ops::op_transpose) return of_transpose(program, node);
  if (op == &ops::op_reshape) return of_reshape(program, node);
  if (op == &ops::op_broadcast_in_dim) return of_broadcast(program, node);
  return std::nullopt;
}

}  // namespace

int ProductTerm::new_label(std::int64_t extent) {
  if (extent == 1) return kNoLabel;
  extents.push_back(extent);
  return static_cast<int>(extents.size()) - 1;
}

bool ProductTerm::has_label(int label) const {
  return std::ranges::any_of(factors, [&](const Factor& factor) { return contains(factor.labels, label); });
}

bool ProductTerm::substitute(std::size_t factor, const ProductTerm& inner,
                             const std::vector<std::uint32_t>& uses) {
  ProductTerm now = *this;
  const Factor outer = factors[factor];
  constexpr int kUnnamed = -2;
  std::vector<int> names(inner.extents.size(), kUnnamed);  // of inner labels, out here
  for (std::size_t axis = 0; axis < inner.result.size(); ++axis)
    if (const int label = inner.result[axis]; label != kNoLabel)
      names[static_cast<std::size_t>(label)] = outer.labels[axis];
  std::vector<Factor> inside = inner.factors;
  for (Factor& part : inside) {
    part.is_exclusive = outer.is_exclusive && uses[part.base.index] == 1;
    for (int& label : part.labels) {
      if (label == kNoLabel) continue;
      int& name = names[static_cast<std::size_t>(label)];
      if (name == kUnnamed) name = now.new_label(inner.extents[static_cast<std::size_t>(label)]);
      label = name;
    }
  }
  now.factors.erase(now.factors.begin() + static_cast<std::ptrdiff_t>(factor));
  now.factors.insert(now.factors.begin() + static_cast<std::ptrdiff_t>(factor), inside.begin(), inside.end());
  for (int label : outer.labels)
    if (label != kNoLabel && !contains(result, label) && !now.has_label(label)) return false;
  *this = std::move(now);
  return true;
}

std::optional<ProductTerm> term_of(const Program& program, Value node,
                                   const std::vector<std::uint32_t>& uses) {
  if (!is_floating(program.type(node).dtype) || program.type(node).element_count() == 0) return std::nullopt;
  for (Value operand : program.operands(node))
    if (program.type(operand).element_count() == 0) return std::nullopt;
  std::optional<ProductTerm> term = any_term(program, node);
  if (!term) return std::nullopt;
  for (ProductTerm::Factor& factor : term->factors) factor.is_exclusive = uses[factor.base.index] == 1;
  return term;
}

bool is_layout(const Program& program, Value node) {
  const OpDef* op = &program.op(node);
  return op == &ops::op_transpose || op == &ops::op_reshape || op == &ops::op_broadcast_in_dim;
}

void look_through_layouts(const Program& program, ProductTerm& term, const std::vector<std::uint32_t>& uses) {
  for (std::size_t i = 0; i < term.factors.size();) {
    const Value base = term.factors[i].base;
    if (!is_layout(program, base)) {
      ++i;
      continue;
    }
    const std::optional<ProductTerm> inner = term_of(program, base, uses);
    if (!inner || !term.substitute(i, *inner, uses)) ++i;
  }
}

}  // namespace loipe::passes
