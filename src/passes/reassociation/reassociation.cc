// SPDX-License-Identifier: Apache-2.0
#include "passes/reassociation/reassociation.h"

#include <algorithm>
#include <optional>

#include "ops/op_list.h"
#include "passes/algebraic/algebraic.h"
#include "passes/common_subexpressions/common_subexpressions.h"
#include "passes/dead_code/dead_code.h"
#include "passes/reassociation/contraction_tree.h"
#include "passes/reassociation/tree_writer.h"
#include "passes/rebuild.h"

namespace loipe::passes {

namespace {

using Factor = ProductTerm::Factor;

OpCost cost_of(const Program& program, Value node) {
  std::vector<const TensorType*> operands;
  for (Value operand : program.operands(node)) operands.push_back(&program.type(operand));
  return program.op(node).cost.value({operands, program.attributes(node), program.type(node)});
}

/// How often each node is an operand of a node that outputs need, or an output.
std::vector<std::uint32_t> count_uses(const Program& program, const std::vector<bool>& is_live) {
  std::vector<std::uint32_t> uses(program.size(), 0);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (is_live[i])
      for (Value operand : program.operands(Value{i})) ++uses[operand.index];
  for (Value output : program.outputs()) ++uses[output.index];
  return uses;
}

/// A term that computes a node, and what it makes superfluous, the node included.
struct Candidate {
  ProductTerm term;
  OpCost replaced;
  std::vector<Value> opened;  ///< products that nothing needs any more
};

/// Of a program without dead code. (An empty einsum claims a negative cost.)
OpCost total_cost(const Program& program) {
  OpCost total;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (!is_floating(program.type(Value{i}).dtype)) continue;
    OpCost cost = cost_of(program, Value{i});
    cost.multiplications = std::max<std::int64_t>(cost.multiplications, 0);
    cost.additions = std::max<std::int64_t>(cost.additions, 0);
    total += cost;
  }
  return total;
}

bool is_cheaper(const OpCost& now, const OpCost& old) {
  return now.multiplications <= old.multiplications && now.total() < old.total();
}

/// One walk over the program: each node on its own.
class Round {
 public:
  explicit Round(const Program& program)
      : program_(program),
        rebuild_(program),
        is_live_(live_nodes(program)),
        uses_(count_uses(program, is_live_)),
        is_gone_(program.size(), false) {}

  /// Nothing where no node can be improved.
  std::optional<Program> run() {
    bool is_changed = false;
    for (std::uint32_t i = 0; i < program_.size(); ++i) {
      const Value node{i};
      const bool is_improved = is_live_[i] && improve(node);
      is_changed |= is_improved;
      if (!is_improved) rebuild_.copy(node);
    }
    if (!is_changed) return std::nullopt;
    return rebuild_.finish();
  }

 private:
  /// All that has one element costs the same in any order.
  bool is_worth_a_look(Value node) const {
    if (is_layout(program_, node)) return false;
    return std::ranges::any_of(program_.operands(node),
                               [&](Value operand) { return program_.type(operand).element_count() > 1; });
  }

  bool improve(Value node) {
    if (!is_worth_a_look(node)) return false;
    const std::optional<ProductTerm> term = term_of(program_, node, uses_);
    if (!term) return false;
    Candidate plain{*term, cost_of(program_, node), {}};
    look_through_layouts(program_, plain.term, uses_);
    std::optional<Candidate> best;
    std::int64_t most_saved = 0;
    for (Candidate& candidate : candidates(plain)) {
      if (!can_be_written(candidate.term)) continue;
      const OpCost now = ContractionTree(candidate.term).cost();
      const std::int64_t saved = candidate.replaced.total() - now.total();
      if (!is_cheaper(now, candidate.replaced) || saved <= most_saved) continue;
      most_saved = saved;
      best = std::move(candidate);
    }
    if (!best) return false;
    for (Value opened : best->opened) is_gone_[opened.index] = true;
    const ContractionTree tree(best->term);
    rebuild_.replace(node, write_tree(rebuild_, best->term, tree, program_.shape(node)));
    return true;
  }

  /// What another node of this round has counted as gone must not be needed again.
  bool can_be_written(const ProductTerm& term) const {
    return term.factors.size() <= ContractionTree::kMostFactors &&
           term.extents.size() <= ContractionTree::kMostLabels &&
           std::ranges::none_of(term.factors, [&](const Factor& f) { return is_gone_[f.base.index]; });
  }

  /// The term as it is, with each product in it opened, and with all of them.
  std::vector<Candidate> candidates(const Candidate& plain) const {
    std::vector<Candidate> list{plain};
    Candidate all = plain;
    std::size_t shift = 0, opened = 0;  // factors that opening has put before the next one
    for (std::size_t i = 0; i < plain.term.factors.size(); ++i) {
      Candidate one = plain;
      if (!open(one, i)) continue;
      const std::size_t before = all.term.factors.size();
      open(all, i + shift);
      shift += all.term.factors.size() - before;
      ++opened;
      list.push_back(std::move(one));
    }
    if (opened > 1) list.push_back(std::move(all));
    return list;
  }

  /// Opens the product that a factor is, if it is one.
  bool open(Candidate& candidate, std::size_t position) const {
    const Factor factor = candidate.term.factors[position];
    if (is_layout(program_, factor.base)) return false;
    const std::optional<ProductTerm> inner = term_of(program_, factor.base, uses_);
    if (!inner || !candidate.term.substitute(position, *inner, uses_)) return false;
    look_through_layouts(program_, candidate.term, uses_);
    if (factor.is_exclusive) {
      candidate.replaced += cost_of(program_, factor.base);
      candidate.opened.push_back(factor.base);
    }
    return true;
  }

  const Program& program_;
  Rebuild rebuild_;
  std::vector<bool> is_live_;
  std::vector<std::uint32_t> uses_;
  std::vector<bool> is_gone_;
};

/// The cheaper program after one round, in normal form; nothing where there is none.
std::optional<Program> improved(const Program& program) {
  const std::optional<Program> changed = Round(program).run();
  if (!changed) return std::nullopt;
  Program cleaned = dead_code(common_subexpressions(algebraic(dead_code(*changed))));
  if (!is_cheaper(total_cost(cleaned), total_cost(dead_code(program)))) return std::nullopt;
  return cleaned;
}

}  // namespace

/// Every round makes the program cheaper, so there is a last one.
Program reassociation(const Program& program) {
  std::optional<Program> best = improved(program);
  if (!best) return program;
  while (std::optional<Program> better = improved(*best)) best = std::move(better);
  return std::move(*best);
}

}  // namespace loipe::passes
