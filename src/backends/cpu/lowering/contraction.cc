// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/contraction.h"

#include <algorithm>

#include "backends/cpu/steps/reduce_step.h"

namespace loipe::cpu {

namespace {

bool contains(const std::vector<Label>& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

Shape extents_of(const std::vector<Label>& labels, Extents extents) {
  Shape shape;
  for (Label label : labels) shape.push_back(extents[label]);
  return shape;
}

/// The view along `order`, which has all its labels; others are broadcast.
StridedView along_labels(const Factor& factor, const std::vector<Label>& order, Extents extents) {
  Integers axis_of;
  for (Label label : factor.labels) axis_of.push_back(std::ranges::find(order, label) - order.begin());
  return along(factor.view, extents_of(order, extents), axis_of);
}

/// Sums over the factor's labels that neither `others` nor the result has.
Factor without_own_labels(Lowering& lowering, const Factor& factor, const std::vector<Label>& others,
                          const std::vector<Label>& result, Extents extents) {
  std::vector<Label> kept, order;
  for (Label label : factor.labels)
    if (contains(others, label) || contains(result, label)) kept.push_back(label);
  if (kept.size() == factor.labels.size()) return factor;
  order = kept;
  for (Label label : factor.labels)
    if (!contains(kept, label)) order.push_back(label);
  const StridedView in = along_labels(factor, order, extents);
  const StridedView sum = lowering.temporary(in.dtype, extents_of(kept, extents));
  lowering.emit(make_reduce_step(in, sum, Reduction::sum, lowering.kernels()), {in}, sum);
  return {sum, kept};
}

/// One factor: a sum, or a permuted copy.
void emit_single(Lowering& lowering, const Factor& factor, const std::vector<Label>& result, Extents extents,
                 const StridedView& out) {
  std::vector<Label> order = result;
  for (Label label : factor.labels)
    if (!contains(result, label)) order.push_back(label);
  const StridedView in = along_labels(factor, order, extents);
  lowering.emit(make_reduce_step(in, out, Reduction::sum, lowering.kernels()), {in}, out);
}

/// The labels of a and b that the result or one of the rest needs.
std::vector<Label> needed_labels(const Factor& a, const Factor& b, std::span<const Factor> rest,
                                 const std::vector<Label>& result) {
  std::vector<Label> needed;
  for (const Factor* factor : {&a, &b})
    for (Label label : factor->labels) {
      const bool is_used = contains(result, label) || std::ranges::any_of(rest, [=](const Factor& f) {
                             return contains(f.labels, label);
                           });
      if (is_used && !contains(needed, label)) needed.push_back(label);
    }
  return needed;
}

std::int64_t combinations(const Factor& a, const Factor& b, Extents extents) {
  std::vector<Label> all = a.labels;
  for (Label label : b.labels)
    if (!contains(all, label)) all.push_back(label);
  return element_count(extents_of(all, extents));
}

/// Moves the pair with the fewest multiplications to the front.
void choose_pair(std::vector<Factor>& factors, Extents extents) {
  std::size_t best_i = 0, best_j = 1;
  for (std::size_t i = 0; i < factors.size(); ++i)
    for (std::size_t j = i + 1; j < factors.size(); ++j)
      if (combinations(factors[i], factors[j], extents) <
          combinations(factors[best_i], factors[best_j], extents)) {
        best_i = i;
        best_j = j;
      }
  std::swap(factors[0], factors[best_i]);
  std::swap(factors[1], factors[best_j]);
}

}  // namespace

Factor make_factor(const StridedView& view, const std::vector<Label>& axes, Extents extents) {
  Factor factor{view, {}};
  for (Label label : axes)
    if (!contains(factor.labels, label)) factor.labels.push_back(label);
  Integers axis_of;
  for (Label label : axes) axis_of.push_back(std::ranges::find(factor.labels, label) - factor.labels.begin());
  factor.view = along(view, extents_of(factor.labels, extents), axis_of);
  return factor;
}

void emit_contraction(Lowering& lowering, std::vector<Factor> factors, const std::vector<Label>& result,
                      Extents extents, const StridedView& out) {
  while (factors.size() > 2) {
    choose_pair(factors, extents);
    const std::span<const Factor> rest = std::span(factors).subspan(2);
    Factor product{{}, needed_labels(factors[0], factors[1], rest, result)};
    product.view = lowering.temporary(out.dtype, extents_of(product.labels, extents));
    emit_contraction(lowering, {factors[0], factors[1]}, product.labels, extents, product.view);
    factors.erase(factors.begin());
    factors[0] = std::move(product);
  }
  if (factors.size() == 1) return emit_single(lowering, factors[0], result, extents, out);
  const Factor a = without_own_labels(lowering, factors[0], factors[1].labels, result, extents);
  const Factor b = without_own_labels(lowering, factors[1], factors[0].labels, result, extents);
  emit_pair_product(lowering, a, b, result, extents, out);
}

}  // namespace loipe::cpu
