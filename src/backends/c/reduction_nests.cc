// SPDX-License-Identifier: Apache-2.0
// Sums and their like. Every result is combined in the order of the reference interpreter. Where the
// innermost axis of the result is also that of the operands, it is the innermost loop, over sums in memory,
// so that C compilers can use vectors without reordering sums; elsewhere a sum is a variable.
#include <algorithm>
#include <functional>

#include "backends/c/block.h"
#include "backends/c/contraction.h"
#include "backends/c/expression.h"
#include "backends/c/nests.h"

namespace loipe::c {

namespace {

std::string start_of(std::string_view op, DType dtype) {
  if (op == "reduce_prod") return "1";
  if (op != "reduce_max" && op != "reduce_min") return "0";
  const bool is_max = op == "reduce_max";
  if (is_floating(dtype)) return is_max ? "-INFINITY" : "INFINITY";
  return std::string(dtype == DType::i64 ? "INT64_" : "INT32_") + (is_max ? "MIN" : "MAX");
}

/// "sum = ..." with one more element.
std::string step(Block& b, std::string_view op, const std::string& sum, const std::string& x) {
  const DType dtype = b.dtype();
  if (op == "reduce_max" || op == "reduce_min") {
    const std::string better = x + (op == "reduce_max" ? " > " : " < ") + sum;
    return "if (" + better + (is_floating(dtype) ? " || isnan(" + x + ")" : "") + ") " + sum + " = " + x +
           ";";
  }
  const bool is_product = op == "reduce_prod";
  if (is_floating(dtype)) return sum + (is_product ? " *= " : " += ") + x + ";";
  return sum + " = " + b.helper(is_product ? "mul" : "add", dtype) + "(" + sum + ", " + x + ");";
}

/// The loops of a sum: over labels of the result, summed labels, and which of the result's is innermost.
struct Loops {
  std::vector<std::int64_t> extents;
  std::vector<Label> result, summed;
  bool sums_in_memory;  ///< with the last label of the result innermost
};

/// add(sum, at): one more term for a sum.
void print_sums(Block& b, std::string_view op, const Loops& loops,
                const std::function<void(const std::string& sum, const Indices& at)>& add) {
  Indices at(loops.extents.size());
  const std::size_t depth = b.depth();
  const auto open = [&](std::span<const Label> labels) {
    for (Label label : labels) at[label] = b.loop(loops.extents[label]);
  };
  const auto result = [&] {
    Indices index;
    for (Label label : loops.result) index.push_back(at[label]);
    return b.element(b.node(), position_of(b.shape(), index));
  };
  const bool is_empty =
      std::ranges::any_of(loops.summed, [&](Label label) { return loops.extents[label] == 0; });
  const std::string start = start_of(op, b.dtype());
  if (loops.sums_in_memory || is_empty) {
    const std::size_t inner = loops.result.empty() ? 0 : loops.result.size() - 1;
    open(std::span(loops.result).first(inner));
    const std::size_t row = b.depth();
    const auto open_inner = [&] { open(std::span(loops.result).subspan(inner)); };
    open_inner();
    b.line(result() + " = " + start + ";");
    b.close_to(row);
    if (!is_empty) {
      open(loops.summed);
      open_inner();
      add(result(), at);
    }
  } else {
    open(loops.result);
    const std::string sum = b.variable("sum");
    b.line(std::string(type_of(b.dtype())) + " " + sum + " = " + start + ";");
    const std::size_t inside = b.depth();
    open(loops.summed);
    add(sum, at);
    b.close_to(inside);
    b.line(result() + " = " + sum + ";");
  }
  b.close_to(depth);
}

void print_reduce(Block& b) {
  const std::string_view op = b.program().op(b.node()).name.value;
  Loops loops{b.shape_of(0), {}, {}, false};
  const Integers& axes = b.attributes().integers("axes");
  for (std::size_t axis = 0; axis < loops.extents.size(); ++axis) {
    const bool is_summed = std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
    (is_summed ? loops.summed : loops.result).push_back(static_cast<Label>(axis));
  }
  loops.sums_in_memory = !loops.result.empty() && !loops.summed.empty() &&
                         loops.result.back() + 1 == static_cast<Label>(loops.extents.size());
  print_sums(b, op, loops, [&](const std::string& sum, const Indices& at) {
    const std::string x = b.load(b.operand(0), at);
    b.line(step(b, op, sum, x));
  });
}

/// Whether neighbours along the label are neighbours in every factor that has it.
bool is_innermost(const Contraction& c, Label label) {
  return std::ranges::all_of(c.operands, [&](const std::vector<Label>& labels) {
    const auto place = std::ranges::find(labels, label);
    return place == labels.end() || place + 1 == labels.end();
  });
}

void print_contraction(Block& b) {
  const Contraction c = Contraction::of(b.program(), b.node());
  Loops loops{c.extents, c.result, c.summed, false};
  loops.sums_in_memory = !c.result.empty() && !c.summed.empty() && is_innermost(c, c.result.back());
  print_sums(b, "reduce_sum", loops, [&](const std::string& sum, const Indices& at) {
    const auto element = [&](std::size_t k) {
      Indices index;
      for (Label label : c.operands[k]) index.push_back(at[label]);
      return b.load(b.operand(k), index);
    };
    const std::size_t depth = b.depth();
    std::string masks, product;
    for (std::size_t k : c.masks) masks += (masks.empty() ? "" : " && ") + element(k);
    if (!masks.empty()) b.open("if (" + masks + ")");
    for (std::size_t k : c.factors) {
      const std::string factor = element(k);
      if (product.empty()) product = factor;
      else if (is_floating(b.dtype())) product += " * " + factor;
      else product = b.helper("mul", b.dtype()) + "(" + product + ", " + factor + ")";
    }
    b.line(step(b, "reduce_sum", sum, product));
    b.close_to(depth);
  });
}

}  // namespace

std::span<const Nest> reduction_nests() {
  static constexpr Nest kNests[] = {
      {"dot_general", Reads::repeated, print_contraction}, {"einsum", Reads::repeated, print_contraction},
      {"reduce_max", Reads::once, print_reduce},           {"reduce_min", Reads::once, print_reduce},
      {"reduce_prod", Reads::once, print_reduce},          {"reduce_sum", Reads::once, print_reduce},
  };
  return kNests;
}

}  // namespace loipe::c
