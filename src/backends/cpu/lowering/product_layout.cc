// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/product_layout.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <tuple>

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
  const bool a_counts = a.labels.size() > b.labels.size();
  const Factor &first = a_counts ? a : b, &second = a_counts ? b : a;
  std::ranges::sort(terms, std::ranges::greater(), [&](Label label) {
    return std::tuple(std::abs(stride_of(first, label)), std::abs(stride_of(second, label)), label);
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
  bool has_vectors;

  FactorLabels(const Factor& factor, const Factor& other, std::vector<Label> term_order,
               const std::vector<Label>& result, Extents extents, bool is_vector)
      : terms(std::move(term_order)), has_vectors(is_vector) {
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

  /// One matrix after the other: a row of vectors for each term, or the terms of each row, which are then
  /// fetched line by line.
  std::vector<Label> in_order() const {
    std::vector<Label> order = batch;
    order.insert(order.end(), others.begin(), others.end());
    if (last && !has_vectors) order.push_back(*last);
    order.insert(order.end(), terms.begin(), terms.end());
    if (last && has_vectors) order.push_back(*last);
    return order;
  }
};

/// Small matrices, one for each index of a batch, of which neighbours along rows or terms lie in different
/// pages, and so compete for the same few lines of the first cache.
bool lies_across_pages(const Factor& factor, const FactorLabels& labels) {
  constexpr std::int64_t kPage = 4096;
  const auto is_far = [&](Label label) {
    return std::abs(stride_of(factor, label)) * static_cast<std::int64_t>(size_of(factor.view.dtype)) >=
           kPage;
  };
  if (labels.batch.empty() || labels.terms.empty()) return false;
  return is_far(labels.terms.back()) || (labels.last && is_far(*labels.last));
}

/// The factor as it lies around this tile, if it does, with the labels in this order.
std::optional<Factor> laid_out_around(Lowering& lowering, const Factor& factor,
                                      const std::vector<Label>& order) {
  Integers axes;
  for (Label label : order) axes.push_back(std::ranges::find(factor.labels, label) - factor.labels.begin());
  const std::optional<StridedView> view = lowering.laid_out_around(factor.view, axes);
  return view ? std::optional(Factor{*view, factor.labels}) : std::nullopt;
}

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
  const auto near = std::ranges::find_if(factor.labels, [&](Label label) {
    return stride_of(factor, label) == 1 && extents[label] > kShortRun;
  });
  if (near == factor.labels.end()) return factor;
  const auto neighbours = std::ranges::find(out.strides, 1) - out.strides.begin();
  const bool has_vectors = neighbours < std::ssize(out.strides) &&
                           stride_of(factor, result[static_cast<std::size_t>(neighbours)]) != 0;
  const std::vector<Label> terms = term_order(factor, other, result);
  const FactorLabels labels(factor, other, terms, result, extents, has_vectors);
  const bool is_along_terms = !terms.empty() && *near == terms.back();
  const bool is_packed = is_along_terms && has_vectors;
  const bool is_near = *near == labels.last || is_along_terms;
  if (is_near && !is_packed && !lies_across_pages(factor, labels)) return factor;
  if (const std::optional<Factor> around = laid_out_around(lowering, factor, labels.in_order());
      around && term_order(*around, other, result) == terms)
    return *around;
  std::int64_t uses = 1;
  for (Label label : other.labels)
    if (stride_of(factor, label) == 0) uses *= extents[label];
  if (is_near || uses < kFewestUses) return factor;
  const Factor copy = laid_out(factor.view.dtype, labels.in_order(), extents);
  return term_order(copy, other, result) == terms ? copied(lowering, factor, copy.labels, extents) : factor;
}

}  // namespace loipe::cpu
