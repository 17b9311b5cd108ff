// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/product_layout.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

namespace loipe::cpu {

namespace {

bool has(const std::vector<Label>& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

}  // namespace

std::int64_t stride_of(const Factor& factor, Label label) {
  const auto place = std::ranges::find(factor.labels, label);
  return place == factor.labels.end()
             ? 0
             : factor.view.strides[static_cast<std::size_t>(place - factor.labels.begin())];
}

std::vector<Label> term_order(const Factor& a, const Factor& b, const std::vector<Label>& result) {
  std::vector<Label> terms;
  for (Label label : a.labels)
    if (!has(result, label)) terms.push_back(label);
  std::ranges::sort(terms, std::ranges::greater(), [&](Label label) {
    return std::pair(std::abs(stride_of(b, label)) + std::abs(stride_of(a, label)), label);
  });
  return terms;
}

namespace {

/// A contiguous factor with the labels in this order, in a buffer to be given.
Factor laid_out(DType dtype, const std::vector<Label>& order, Extents extents) {
  Shape shape;
  for (Label label : order) shape.push_back(extents[label]);
  return {contiguous_view(0, dtype, shape), order};
}

/// A contiguous copy with the labels in this order. Labels that are left out run over one and the
/// same elements.
Factor copied(Lowering& lowering, const Factor& factor, const std::vector<Label>& order, Extents extents) {
  const PassLog::Scope scope(lowering.log(), BackendPass::layout);
  Factor copy = laid_out(factor.view.dtype, order, extents);
  Integers axis_of;
  for (Label label : factor.labels)
    axis_of.push_back(has(order, label) ? std::ranges::find(order, label) - order.begin() : kNoAxis);
  const StridedView from = along(factor.view, copy.view.shape, axis_of);
  copy.view = lowering.temporary(copy.view.dtype, copy.view.shape);
  lowering.emit_copy(from, copy.view);
  lowering.note_layout(from, copy.view);
  return copy;
}

/// The labels of one factor of a matrix product by the loops that they become.
struct FactorLabels {
  std::vector<Label> batch, others;  ///< in both factors and the result; of this factor, but for the last
  std::vector<Label> terms;
  std::optional<Label>
      last;  ///< along which vectors or rows of a tile run: in the result the last, or the longest

  FactorLabels(const Factor& factor, const Factor& other, std::vector<Label> term_order,
               const std::vector<Label>& result, Extents extents, bool has_vectors)
      : terms(std::move(term_order)) {
    for (Label label : result) {
      if (extents[label] == 1 || stride_of(factor, label) == 0) continue;
      if (stride_of(other, label) != 0) {
        batch.push_back(label);
      } else if (!last || has_vectors || extents[label] > extents[*last]) {
        if (last) others.push_back(*last);
        last = label;
      } else {
        others.push_back(label);
      }
    }
  }

  /// One matrix after the other, their terms outside.
  std::vector<Label> in_order() const {
    std::vector<Label> order = batch;
    order.insert(order.end(), others.begin(), others.end());
    order.insert(order.end(), terms.begin(), terms.end());
    if (last) order.push_back(*last);
    return order;
  }
};

}  // namespace

Factor rearranged(Lowering& lowering, const Factor& factor, const Factor& other, Extents extents) {
  std::vector<Label> order = factor.labels;
  const auto distance = [&](Label label) {
    const std::int64_t stride = std::abs(stride_of(other, label));
    return std::pair(stride == 0 ? std::numeric_limits<std::int64_t>::max() : stride, label);
  };
  std::ranges::sort(order, std::ranges::greater(), distance);
  return copied(lowering, factor, order, extents);
}

Factor with_near_matrices(Lowering& lowering, const Factor& factor, const Factor& other,
                          const std::vector<Label>& result, Extents extents, const StridedView& out) {
  constexpr std::int64_t kFewestUses = 8, kShortRun = 4;
  if (!lowering.does(BackendPass::layout)) return factor;
  std::int64_t uses = 1;
  for (Label label : other.labels)
    if (stride_of(factor, label) == 0) uses *= extents[label];
  const auto near = std::ranges::find_if(factor.labels, [&](Label label) {
    return stride_of(factor, label) == 1 && extents[label] > kShortRun;
  });
  if (uses < kFewestUses || near == factor.labels.end()) return factor;
  const auto neighbours = std::ranges::find(out.strides, 1) - out.strides.begin();
  const bool has_vectors = neighbours < std::ssize(out.strides) &&
                           stride_of(factor, result[static_cast<std::size_t>(neighbours)]) != 0;
  const std::vector<Label> terms = term_order(factor, other, result);
  const FactorLabels labels(factor, other, terms, result, extents, has_vectors);
  if (*near == labels.last || (!terms.empty() && *near == terms.back())) return factor;
  const Factor copy = laid_out(factor.view.dtype, labels.in_order(), extents);
  return term_order(copy, other, result) == terms ? copied(lowering, factor, copy.labels, extents) : factor;
}

}  // namespace loipe::cpu
