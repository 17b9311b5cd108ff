// SPDX-License-Identifier: Apache-2.0
// Two factors: which loops the labels become, and which kernel runs them.
#include <algorithm>
#include <cstdlib>

#include "backends/cpu/lowering/contraction.h"
#include "backends/cpu/lowering/product_layout.h"
#include "backends/cpu/steps/copy_step.h"
#include "backends/cpu/steps/product_step.h"
#include "backends/cpu/steps/vector_sums.h"

namespace loipe::cpu {

namespace {

/// One label with its distances in out, a and b (0 where it does not occur).
struct Axis {
  std::int64_t extent, out, a, b;
};

/// The labels by where they occur: in all three, in a and out, in b and out, in a and b.
struct Axes {
  std::vector<Axis> results;  ///< of out, in its order
  std::vector<Axis> terms;
};

/// Neighbours that are one axis in all three become one.
void merge(std::vector<Axis>& axes) {
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty()) {
      Axis& last = merged.back();
      if (last.out == axis.out * axis.extent && last.a == axis.a * axis.extent &&
          last.b == axis.b * axis.extent) {
        last = {last.extent * axis.extent, axis.out, axis.a, axis.b};
        continue;
      }
    }
    merged.push_back(axis);
  }
  axes = std::move(merged);
}

Axes axes_of(const Factor& a, const Factor& b, const std::vector<Label>& result, Extents extents,
             const StridedView& out) {
  Axes axes;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (extents[result[i]] != 1)
      axes.results.push_back(
          {extents[result[i]], out.strides[i], stride_of(a, result[i]), stride_of(b, result[i])});
  for (Label label : term_order(a, b, result))
    if (extents[label] != 1)
      axes.terms.push_back({extents[label], 0, stride_of(a, label), stride_of(b, label)});
  merge(axes.results);
  merge(axes.terms);
  return axes;
}

enum class Role { batch, row, column };

/// An operand that is constant along the axis counts as not having it.
Role role_of(const Axis& axis) {
  if ((axis.a != 0) == (axis.b != 0)) return Role::batch;
  return axis.a != 0 ? Role::row : Role::column;
}

std::int64_t extent_of(const std::vector<Axis>& axes) {
  std::int64_t extent = 1;
  for (const Axis& axis : axes) extent *= axis.extent;
  return extent;
}

/// Positions along several axes, the last running fastest.
AxisMap map_of(const std::vector<Axis>& axes, std::int64_t Axis::* stride) {
  if (axes.empty()) return {};
  if (axes.size() == 1) return {axes[0].*stride, {}};
  Integers table{0};
  for (const Axis& axis : axes) {
    Integers longer;
    for (std::int64_t position : table)
      for (std::int64_t i = 0; i < axis.extent; ++i) longer.push_back(position + i * (axis.*stride));
    table = std::move(longer);
  }
  // No axis has extent 1. Where the first run ends, an axis does, so that all runs are as long.
  const std::int64_t step = table[1] - table[0];
  std::size_t run = 1;
  while (run < table.size() && table[run] - table[run - 1] == step) ++run;
  if (run == table.size()) return {step, {}};
  return {step, std::move(table), static_cast<std::int64_t>(run)};
}

/// The loops of a matrix product.
struct ProductAxes {
  std::vector<Axis> batch, rows, columns, terms;

  explicit ProductAxes(const Axes& axes) : terms(axes.terms) {
    for (const Axis& axis : axes.results) {
      const Role role = role_of(axis);
      (role == Role::batch ? batch : role == Role::row ? rows : columns).push_back(axis);
    }
    merge(rows);
    merge(columns);
  }

  /// Makes b the operand whose labels run through the neighbours of the result.
  void swap_operands() {
    std::swap(rows, columns);
    for (std::vector<Axis>* group : {&batch, &rows, &columns, &terms})
      for (Axis& axis : *group) std::swap(axis.a, axis.b);
  }
};

/// Whether a loop over all the axes runs over vectors of neighbours in b and in the result.
bool has_vectors(const std::vector<Axis>& columns, std::int64_t lanes) {
  if (columns.empty()) return false;
  const Axis& last = columns.back();
  return last.b == 1 && last.out == 1 && last.extent % lanes == 0;
}

/// Where several axes do not merge, the loop runs over one of them and the others
/// join the batch, if it is long enough to fill tiles; else it runs over a table.
void keep_one(std::vector<Axis>& axes, std::size_t kept, std::vector<Axis>& batch) {
  constexpr std::int64_t kLongEnough = 16;
  if (axes.size() < 2 || axes[kept].extent < kLongEnough) return;
  const Axis one = axes[kept];
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(kept));
  batch.insert(batch.end(), axes.begin(), axes.end());
  axes = {one};
}

std::int64_t lanes_of(DType dtype, const KernelTable& kernels) {
  return dtype == DType::f32 ? kernels.f32.lanes : kernels.f64.lanes;
}

std::vector<ResultLoop> result_loops(const std::vector<Axis>& axes) {
  std::vector<ResultLoop> loops;
  for (const Axis& axis : axes) loops.push_back({axis.extent, axis.out});
  return loops;
}

void emit_matrix_product(Lowering& lowering, Factor a, Factor b, ProductAxes axes, const StridedView& out) {
  if (!axes.rows.empty() && axes.rows.back().out == 1) {
    axes.swap_operands();
    std::swap(a, b);
  }
  const auto longest = std::ranges::max_element(axes.rows, {}, &Axis::extent) - axes.rows.begin();
  keep_one(axes.rows, static_cast<std::size_t>(longest), axes.batch);
  if (!has_vectors(axes.columns, lanes_of(out.dtype, lowering.kernels())))
    keep_one(axes.columns, axes.columns.size() - 1, axes.batch);
  ProductPlan plan{.dtype = out.dtype,
                   .buffers = {a.view.buffer, b.view.buffer, out.buffer},
                   .offsets = {a.view.offset, b.view.offset, out.offset},
                   .m = extent_of(axes.rows),
                   .n = extent_of(axes.columns),
                   .k = extent_of(axes.terms),
                   .a_m = map_of(axes.rows, &Axis::a),
                   .a_k = map_of(axes.terms, &Axis::a),
                   .b_k = map_of(axes.terms, &Axis::b),
                   .b_n = map_of(axes.columns, &Axis::b),
                   .c_m = map_of(axes.rows, &Axis::out),
                   .c_n = map_of(axes.columns, &Axis::out),
                   .batch = {}};
  for (const Axis& axis : axes.batch) plan.batch.append(axis.extent, {axis.a, axis.b, axis.out});
  plan.batch.collapse_axes();
  if (out.offset == 0 && out.is_contiguous())
    lowering.epilogues().remember(out.buffer, {lowering.step_count(),
                                               plan,
                                               result_loops(axes.batch),
                                               result_loops(axes.rows),
                                               result_loops(axes.columns),
                                               {a.view, b.view}});
  lowering.emit(make_product_step(std::move(plan), lowering.kernels()), {a.view, b.view}, out);
}

SumPlan sum_plan(const Factor& a, const Factor& b, const Axes& axes, const StridedView& out) {
  SumPlan plan{.dtype = out.dtype,
               .buffers = {out.buffer, a.view.buffer, b.view.buffer},
               .offsets = {out.offset, a.view.offset, b.view.offset},
               .results = {},
               .terms = {}};
  for (const Axis& axis : axes.results) plan.results.append(axis.extent, {axis.out, axis.a, axis.b});
  for (const Axis& axis : axes.terms) plan.terms.append(axis.extent, {axis.a, axis.b});
  return plan;
}

/// Neighbours in the result are neighbours, or one and the same, in both operands.
bool has_lanes(const Axes& axes) {
  if (axes.results.empty()) return false;
  const Axis& last = axes.results.back();
  return last.a >= 0 && last.a <= 1 && last.b >= 0 && last.b <= 1;
}

/// The extent of the terms that are neighbours in both operands.
std::int64_t common_run(const Axes& axes) {
  for (const Axis& axis : axes.terms)
    if (axis.a == 1 && axis.b == 1) return axis.extent;
  return 1;
}

/// Dot products want neighbours in both operands; the smaller one is rearranged if that gives them.
void emit_dot_products(Lowering& lowering, Factor a, Factor b, const std::vector<Label>& result,
                       Extents extents, const StridedView& out) {
  constexpr std::int64_t kLongRun = 8;
  Axes axes = axes_of(a, b, result, extents, out);
  if (lowering.does(BackendPass::layout) && common_run(axes) < kLongRun) {
    const bool a_is_smaller = a.view.count() <= b.view.count();
    Factor& smaller = a_is_smaller ? a : b;
    const Factor& larger = a_is_smaller ? b : a;
    const bool gains = std::ranges::any_of(axes.terms, [=](const Axis& axis) {
      return (a_is_smaller ? axis.b : axis.a) == 1 && axis.extent >= kLongRun;
    });
    if (gains) {
      smaller = rearranged(lowering, smaller, larger, extents);
      axes = axes_of(a, b, result, extents, out);
    }
  }
  lowering.emit(make_dot_step(sum_plan(a, b, axes, out), lowering.kernels()), {a.view, b.view}, out);
}

}  // namespace

void emit_pair_product(Lowering& lowering, const Factor& a, const Factor& b, const std::vector<Label>& result,
                       Extents extents, const StridedView& out) {
  if (out.count() == 0) return;
  const Axes axes = axes_of(a, b, result, extents, out);
  if (extent_of(axes.terms) == 0) return lowering.emit(make_zero_step(out), {}, out);
  const ProductAxes product(axes);
  const bool is_matrix_product = !product.rows.empty() && !product.columns.empty();
  const bool has_batch_lanes = has_lanes(axes) && role_of(axes.results.back()) == Role::batch;
  if (is_matrix_product && !has_batch_lanes) {
    const Factor near_a = with_near_matrices(lowering, a, b, result, extents, out);
    const Factor near_b = with_near_matrices(lowering, b, near_a, result, extents, out);
    return emit_matrix_product(lowering, near_a, near_b,
                               ProductAxes(axes_of(near_a, near_b, result, extents, out)), out);
  }
  if (!has_lanes(axes)) return emit_dot_products(lowering, a, b, result, extents, out);
  lowering.emit(make_lane_sum_step(sum_plan(a, b, axes, out), lowering.kernels()), {a.view, b.view}, out);
}

}  // namespace loipe::cpu
