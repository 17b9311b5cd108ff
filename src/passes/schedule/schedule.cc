// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "passes/rebuild.h"

namespace loipe::passes {

namespace {

using Order = std::vector<Value>;

std::int64_t bytes_of(const Program& program, Value v) {
  if (is_argument(program, v) || is_constant(program, v)) return 0;
  return static_cast<std::int64_t>(program.type(v).byte_size());
}

/// How often each node is an operand or an output.
std::vector<std::uint32_t> count_uses(const Program& program) {
  std::vector<std::uint32_t> uses(program.size(), 0);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    for (Value operand : program.operands(Value{i})) ++uses[operand.index];
  for (Value output : program.outputs()) ++uses[output.index];
  return uses;
}

std::int64_t peak_of(const Program& program, const Order& order) {
  std::vector<std::uint32_t> uses = count_uses(program);
  std::int64_t live = 0, peak = 0;
  for (Value v : order) {
    live += bytes_of(program, v);
    peak = std::max(peak, live);
    for (Value operand : program.operands(v))
      if (--uses[operand.index] == 0) live -= bytes_of(program, operand);
    if (uses[v.index] == 0) live -= bytes_of(program, v);
  }
  return peak;
}

Order order_as_written(const Program& program) {
  Order order;
  for (std::uint32_t i = 0; i < program.size(); ++i) order.push_back(Value{i});
  return order;
}

class DepthFirst {
 public:
  explicit DepthFirst(const Program& program)
      : program_(program), needs_(program.size(), 0), seen_in_(program.size(), 0) {
    for (std::uint32_t i = 0; i < program.size(); ++i) needs_[i] = need_of(Value{i});
  }

  Order order() {
    is_done_.assign(program_.size(), false);
    for (Value argument : program_.arguments()) place(argument);
    for (Value output : program_.outputs()) visit(output);
    for (std::uint32_t i = 0; i < program_.size(); ++i)
      if (!is_done_[i]) place(Value{i});
    return std::move(order_);
  }

 private:
  struct Keyed {
    std::int64_t key;
    std::size_t place;
    Value value;
  };

  /// Operands, each once: first those that need most beyond what stays of them.
  const std::vector<Value>& sorted_operands(Value v) {
    sorted_.clear();
    ++question_;
    for (Value operand : program_.operands(v))
      if (std::exchange(seen_in_[operand.index], question_) != question_) sorted_.push_back(operand);
    sort_by_passing();
    return sorted_;
  }
  /// Equals stay in their order. std::stable_sort would do; clang finds a deprecated function in it.
  void sort_by_passing() {
    keyed_.clear();
    for (Value operand : sorted_) keyed_.push_back({-passing(operand), keyed_.size(), operand});
    std::ranges::sort(keyed_, {}, [](const Keyed& k) { return std::pair(k.key, k.place); });
    for (std::size_t k = 0; k < keyed_.size(); ++k) sorted_[k] = keyed_[k].value;
  }
  std::int64_t passing(Value v) const { return needs_[v.index] - bytes_of(program_, v); }

  /// Bytes that computing it needs at its peak, if nothing in it is used elsewhere.
  std::int64_t need_of(Value v) {
    std::int64_t kept = 0, need = 0;
    for (Value operand : sorted_operands(v)) {
      need = std::max(need, kept + needs_[operand.index]);
      kept += bytes_of(program_, operand);
    }
    return std::max(need, kept + bytes_of(program_, v));
  }

  void place(Value v) {
    is_done_[v.index] = true;
    order_.push_back(v);
  }

  /// Chains may be as long as the program, so the stack is our own.
  void visit(Value root) {
    struct Visit {
      Value value;
      bool has_operands;
    };
    std::vector<Visit> stack{{root, false}};
    while (!stack.empty()) {
      const Visit top = stack.back();
      stack.pop_back();
      if (is_done_[top.value.index]) continue;
      if (top.has_operands) {
        place(top.value);
        continue;
      }
      stack.push_back({top.value, true});
      const std::vector<Value>& operands = sorted_operands(top.value);
      for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand)
        if (!is_done_[operand->index]) stack.push_back({*operand, false});
    }
  }

  const Program& program_;
  std::vector<std::int64_t> needs_;
  std::vector<bool> is_done_;
  Order order_;
  std::vector<Value> sorted_;
  std::vector<Keyed> keyed_;
  std::vector<std::uint64_t> seen_in_;  ///< the last question about sorted operands that had the node
  std::uint64_t question_ = 0;
};

}  // namespace

std::int64_t peak_live_bytes(const Program& program) { return peak_of(program, order_as_written(program)); }

Program schedule(const Program& program) {
  const Order order = DepthFirst(program).order();
  if (peak_of(program, order) >= peak_live_bytes(program)) return program;
  Rebuild rebuild(program);
  for (Value v : order) rebuild.copy(v);
  return rebuild.finish();
}

}  // namespace loipe::passes
