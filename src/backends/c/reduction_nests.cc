// SPDX-License-Identifier: Apache-2.0
// Sums and their like. Every result is combined in the order of the reference interpreter. Where the
// innermost axis of the result is also that of the operands, it is the innermost loop, over sums in memory,
// so that C compilers can use vectors without reordering sums; elsewhere a sum is a variable.
#include <algorithm>
#include <functional>
#include <optional>

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

/// The loops of a sum.
struct Loops {
  std::vector<std::int64_t> extents;
  std::vector<Label> result, summed;
  std::optional<Label> inner;  ///< of the result: the innermost loop, over sums in memory
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
  const auto is_empty = [&](Label label) { return loops.extents[label] == 0; };
  const std::string start = start_of(op, b.dtype());
  if (std::ranges::any_of(loops.summed, is_empty)) {
    open(loops.result);
    b.line(result() + " = " + start + ";");
  } else if (loops.inner) {
    std::vector<Label> outer = loops.result;
    std::erase(outer, *loops.inner);
    open(outer);
    const std::size_t row = b.depth();
    open(std::span(&*loops.inner, 1));
    b.line(result() + " = " + start + ";");
    b.close_to(row);
    open(loops.summed);
    open(std::span(&*loops.inner, 1));
    add(result(), at);
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
  Loops loops{b.shape_of(0), {}, {}, {}};
  const Integers& axes = b.attributes().integers("axes");
  for (std::size_t axis = 0; axis < loops.extents.size(); ++axis) {
    const bool is_summed = std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
    (is_summed ? loops.summed : loops.result).push_back(static_cast<Label>(axis));
  }
  if (!loops.result.empty() && !loops.summed.empty() && loops.result.back() + 1 == loops.extents.size())
    loops.inner = loops.result.back();
  print_sums(b, op, loops, [&](const std::string& sum, const Indices& at) {
    const std::string x = b.load(b.operand(0), at);
    b.line(step(b, op, sum, x));
  });
}

/// A factor as the loops read it: in its own memory, or laid out anew.
struct Factor {
  std::vector<Label> labels;
  std::string copy;  ///< empty: in its own memory
};

std::int64_t count(const Contraction& c, const std::vector<Label>& labels) {
  return count_assignments(labels, c.extents);
}

/// Copies an operand so that neighbours along the label are neighbours.
Factor laid_out(Block& b, const Contraction& c, std::size_t k, Label label) {
  Factor factor{c.operands[k], ""};
  std::erase(factor.labels, label);
  factor.labels.push_back(label);
  factor.copy = b.scratch(b.dtype(), count(c, factor.labels));
  Indices at(c.extents.size()), from, to;
  Shape shape;
  const std::size_t depth = b.depth();
  for (Label own : factor.labels) {
    to.push_back(at[own] = b.loop(c.extents[own]));
    shape.push_back(c.extents[own]);
  }
  for (Label own : c.operands[k]) from.push_back(at[own]);
  b.line(factor.copy + "[" + position_of(shape, to).text() + "] = " + b.load(b.operand(k), from) + ";");
  b.close_to(depth);
  return factor;
}

/// Whether elements that are neighbours along the label are so, or one, in memory.
bool are_neighbours(const Block& b, const Contraction& c, std::size_t k, Label label) {
  Indices at;
  for (Label own : c.operands[k]) at.push_back(own == label ? Affine::of("i") : Affine(0));
  const std::int64_t stride = b.position(b.operand(k), at).stride("i");
  return stride == 0 || stride == 1;
}

/// The innermost label: the last one of the result. Factors that lie otherwise are laid out anew, if
/// elements of the copy are used often; else no label is.
std::optional<Label> choose_inner(Block& b, const Contraction& c, std::vector<Factor>& operands) {
  constexpr std::int64_t kLeastUses = 4;
  const auto inner =
      std::find_if(c.result.rbegin(), c.result.rend(), [&](Label label) { return c.extents[label] > 1; });
  if (inner == c.result.rend() || c.summed.empty()) return std::nullopt;
  std::vector<std::size_t> scattered;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (are_neighbours(b, c, k, *inner)) continue;
    const std::int64_t elements = count(c, c.operands[k]), terms = count(c, c.result) * count(c, c.summed);
    const bool is_mask = std::ranges::find(c.masks, k) != c.masks.end();
    if (is_mask || terms < kLeastUses * elements) return std::nullopt;
    scattered.push_back(k);
  }
  for (std::size_t k : scattered) operands[k] = laid_out(b, c, k, *inner);
  return *inner;
}

void print_contraction(Block& b) {
  const Contraction c = Contraction::of(b.program(), b.node());
  std::vector<Factor> operands;
  for (const std::vector<Label>& labels : c.operands) operands.push_back({labels, ""});
  const Loops loops{c.extents, c.result, c.summed, choose_inner(b, c, operands)};
  print_sums(b, "reduce_sum", loops, [&](const std::string& sum, const Indices& at) {
    const auto element = [&](std::size_t k) {
      Indices index;
      Shape shape;
      for (Label label : operands[k].labels) {
        index.push_back(at[label]);
        shape.push_back(c.extents[label]);
      }
      if (operands[k].copy.empty()) return b.load(b.operand(k), index);
      return operands[k].copy + "[" + position_of(shape, index).text() + "]";
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
