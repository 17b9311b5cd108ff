// SPDX-License-Identifier: Apache-2.0
// Ops along the last axis, or on matrices of the last two: scans, sorts, solves.
#include "backends/c/block.h"
#include "backends/c/expression.h"
#include "backends/c/nests.h"
#include "ops/linear_algebra/triangular.h"

namespace loipe::c {

namespace {

bool flag(const Block& b, std::string_view name) { return b.attributes().integer(name) != 0; }

/// Loops over all axes but the last, and the scan's, in its direction: the index.
Indices scan_loops(Block& b, const std::string& start, std::string& so_far, std::string& step) {
  const std::span<const std::int64_t> shape = b.shape();
  Indices at = b.loops(shape.first(shape.size() - 1));
  so_far = b.variable("so_far");
  step = b.variable("step");
  const std::int64_t n = shape.back();
  b.line(std::string(type_of(b.dtype())) + " " + so_far + " = " + start + ";");
  b.open("for (int64_t " + step + " = 0; " + step + " < " + std::to_string(n) + "; ++" + step + ")");
  const bool backwards = flag(b, "reverse");
  Affine i(backwards ? n - 1 : 0);
  i.add(Affine::of(step), backwards ? -1 : 1);
  at.push_back(i);
  return at;
}

void print_cumulative(Block& b) {
  const bool is_product = b.program().op(b.node()).name.value == "cumprod",
             is_exclusive = flag(b, "exclusive");
  const std::size_t depth = b.depth();
  std::string so_far, step;
  const Indices at = scan_loops(b, is_product ? "1" : "0", so_far, step);
  const std::string store = b.element(b.node(), position_of(b.shape(), at)) + " = " + so_far + ";";
  const std::string x = b.load(b.operand(0), at);
  if (is_exclusive) b.line(store);
  if (is_floating(b.dtype())) b.line(so_far + (is_product ? " *= " : " += ") + x + ";");
  else
    b.line(so_far + " = " + b.helper(is_product ? "mul" : "add", b.dtype()) + "(" + so_far + ", " + x + ");");
  if (!is_exclusive) b.line(store);
  b.close_to(depth);
}

/// The first step has no factor: it may be infinite.
void print_recurrence(Block& b) {
  const std::size_t depth = b.depth();
  std::string so_far, step;
  const Indices at = scan_loops(b, "0", so_far, step);
  const std::string a = b.load_broadcast(b.operand(0), at), x = b.load_broadcast(b.operand(1), at);
  b.line(so_far + " = " + step + " > 0 ? " + x + " + " + a + " * " + so_far + " : " + x + ";");
  b.line(b.element(b.node(), position_of(b.shape(), at)) + " = " + so_far + ";");
  b.close_to(depth);
}

/// Of sort and top_k their entries, of argsort and top_k_indices the places these come from.
void print_sorted(Block& b) {
  const std::string_view op = b.program().op(b.node()).name.value;
  const DType dtype = b.program().type(b.operand(0)).dtype;
  const bool is_descending = b.attributes().has("k") || flag(b, "descending");
  const std::span<const std::int64_t> shape = b.shape_of(0);
  const std::int64_t n = shape.back(), kept = b.shape().back();
  const std::string places = b.scratch(DType::i64, n), merged = b.scratch(DType::i64, n);
  const std::size_t depth = b.depth();
  const Affine row = b.loop(element_count(shape.first(shape.size() - 1)));
  Affine from, to;
  from.add(row, n);
  to.add(row, kept);
  b.line(b.helper("sort", dtype) + "(" + b.pointer(b.operand(0), from) + ", " + std::to_string(n) + ", " +
         (is_descending ? "1" : "0") + ", " + places + ", " + merged + ");");
  const Affine i = b.loop(kept);
  to.add(i);
  const std::string place = places + "[" + i.text() + "]";
  from.add(Affine::of(place));
  const bool are_places = op == "argsort" || op == "top_k_indices";
  b.line(b.element(b.node(), to) + " = " + (are_places ? place : b.element(b.operand(0), from)) + ";");
  b.close_to(depth);
}

void print_solve(Block& b) {
  const ops::Triangle triangle = ops::Triangle::of(b.attributes());
  const std::int64_t n = b.shape_of(0).back(), m = b.shape().back();
  const std::size_t depth = b.depth();
  const Affine i = b.loop(element_count(b.shape()));
  b.line(b.element(b.node(), i) + " = " + b.element(b.operand(1), i) + ";");
  b.close_to(depth);
  const Affine matrix = b.loop(element_count(b.shape()) / (n * m));
  Affine a, x;
  a.add(matrix, n * n);
  x.add(matrix, n * m);
  b.line(b.helper("solve", b.dtype()) + "(" + b.pointer(b.operand(0), a) + ", " + b.pointer(b.node(), x) +
         ", " + std::to_string(n) + ", " + std::to_string(m) + ", " + (triangle.lower ? "1" : "0") + ", " +
         (triangle.transposed ? "1" : "0") + ", " + (triangle.unit_diagonal ? "1" : "0") + ");");
  b.close_to(depth);
}

void print_cholesky(Block& b) {
  const std::int64_t n = b.shape().back();
  const std::size_t depth = b.depth();
  Affine first;
  first.add(b.loop(element_count(b.shape()) / (n * n)), n * n);
  b.line(b.helper("cholesky", b.dtype()) + "(" + b.pointer(b.operand(0), first) + ", " +
         b.pointer(b.node(), first) + ", " + std::to_string(n) + ");");
  b.close_to(depth);
}

}  // namespace

std::span<const Nest> row_nests() {
  static constexpr Nest kNests[] = {
      {"argsort", Reads::in_memory, print_sorted},
      {"cholesky", Reads::in_memory, print_cholesky},
      {"cumprod", Reads::once, print_cumulative},
      {"cumsum", Reads::once, print_cumulative},
      {"linear_recurrence", Reads::repeated, print_recurrence},
      {"sort", Reads::in_memory, print_sorted},
      {"top_k", Reads::in_memory, print_sorted},
      {"top_k_indices", Reads::in_memory, print_sorted},
      {"triangular_solve", Reads::in_memory, print_solve},
  };
  return kNests;
}

}  // namespace loipe::c
