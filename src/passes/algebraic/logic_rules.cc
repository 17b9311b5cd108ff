// SPDX-License-Identifier: Apache-2.0
// Rules of ops that only choose.
#include "ops/op_list.h"
#include "passes/algebraic/simplifier.h"

namespace loipe::passes {

namespace {

using namespace ops;

std::optional<Value> select(Simplifier& s, const Call& c) {
  const Value condition = c.operands[0], on_true = c.operands[1], on_false = c.operands[2];
  if (on_true == on_false) return s.spread(on_true, c.type.shape);
  if (const auto known = s.uniform(condition))
    return s.spread(*known != 0 ? on_true : on_false, c.type.shape);
  if (const auto opposite = s.operand_if(condition, op_not))
    return s.emit(op_select, {*opposite, on_false, on_true});
  return std::nullopt;
}

/// f(x, x) = x, for min, max, and, or.
std::optional<Value> idempotent(Simplifier&, const Call& c) {
  if (c.operands[0] == c.operands[1]) return c.operands[0];
  return std::nullopt;
}

/// And is x where the other operand is true, and false where it is false; or the
/// other way round. For bool only: the bits of integers are not looked at.
template <bool neutral>
std::optional<Value> connective(Simplifier& s, const Call& c) {
  if (c.type.dtype == DType::boolean)
    for (std::size_t k : {0u, 1u}) {
      const auto known = s.uniform(c.operands[k]);
      if (known) return s.spread(c.operands[(*known != 0) == neutral ? 1 - k : k], c.type.shape);
    }
  return idempotent(s, c);
}

std::optional<Value> logical_not(Simplifier& s, const Call& c) { return s.operand_if(c.operands[0], op_not); }

}  // namespace

std::span<const RuleOfOp> logic_rules() {
  static constexpr RuleOfOp kRules[] = {{&op_select, select},        {&op_max, idempotent},
                                        {&op_min, idempotent},       {&op_and, connective<true>},
                                        {&op_or, connective<false>}, {&op_not, logical_not}};
  return kRules;
}

}  // namespace loipe::passes
