// SPDX-License-Identifier: Apache-2.0
#include "passes/recomputation/recomputation.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "ops/op_list.h"
#include "passes/rebuild.h"
#include "passes/recomputation/segments.h"

namespace loipe {

namespace {

constexpr std::int64_t kExpensive = 1000;  ///< multiplications per element

bool is_expensive(const Program& program, Value v) {
  std::vector<const TensorType*> operands;
  for (Value operand : program.operands(v)) operands.push_back(&program.type(operand));
  const TensorType& type = program.type(v);
  const OpCost cost = program.op(v).cost.value({operands, program.attributes(v), type});
  return cost.multiplications > kExpensive * std::max<std::int64_t>(type.element_count(), 1);
}

class Recomputation {
 public:
  Recomputation(const Program& program, const RecomputationOptions& options)
      : program_(program),
        options_(options),
        at_(program, options.forward_outputs, options.stride),
        rebuild_(program),
        barriers_(at_.cuts.size()) {}

  Program run() {
    if (options_.segments == 0 || at_.count() == 0) return program_;
    const std::vector<Value> derivatives = in_stages();
    find_entries(derivatives);
    for (std::uint32_t i = 0; i < program_.size(); ++i)
      if (at_.is_forward[i] || program_.operands(Value{i}).empty()) rebuild_.copy(Value{i});
    for (Value v : derivatives) {
      std::vector<Value> operands;
      for (Value operand : program_.operands(v)) operands.push_back(again(operand));
      rebuild_.replace(v, rebuild_.emit(program_.op(v), operands, program_.attributes(v)));
    }
    return rebuild_.finish();
  }

 private:
  /// What is no part of the forward computation: later segments first, else as before. That
  /// is an order in time, since a node's stage is at most that of its operands.
  std::vector<Value> in_stages() const {
    std::vector<Value> nodes;
    for (std::uint32_t i = 0; i < program_.size(); ++i)
      if (!at_.is_forward[i] && !program_.operands(Value{i}).empty()) nodes.push_back(Value{i});
    std::ranges::sort(nodes, [&](Value a, Value b) {
      const std::size_t x = at_.stage[a.index], y = at_.stage[b.index];
      return x != y ? x > y : a < b;
    });
    return nodes;
  }

  /// For each segment, the last value from later ones that its derivatives use: the
  /// cotangent that enters it. What has none is not computed again.
  void find_entries(const std::vector<Value>& derivatives) {
    std::vector<std::size_t> place(program_.size(), 0);
    for (std::size_t k = 0; k < derivatives.size(); ++k) place[derivatives[k].index] = k;
    entries_.resize(at_.cuts.size());
    for (Value v : derivatives) {
      const std::size_t stage = at_.stage[v.index];
      if (stage >= entries_.size()) continue;
      for (Value operand : program_.operands(v)) {
        const std::uint32_t o = operand.index;
        if (at_.is_forward[o] || program_.operands(operand).empty() || at_.stage[o] <= stage ||
            at_.stage[o] == Segments::kNone)
          continue;
        if (!entries_[stage] || place[entries_[stage]->index] < place[o]) entries_[stage] = operand;
      }
    }
  }

  bool is_recomputed(Value v) const {
    if (!at_.is_stream[v.index] || at_.is_cut(v)) return false;
    const std::size_t segment = at_.segment[v.index];
    if (segment >= std::min(options_.segments, at_.count()) || !entries_[segment]) return false;
    return !options_.keeps_expensive || !is_expensive(program_, v);
  }

  /// The value for a derivative: computed again, in an order without recursion, or kept.
  Value again(Value wanted) {
    if (!is_recomputed(wanted)) return rebuild_.of(wanted);
    std::vector<Value> open{wanted};
    while (!open.empty()) {
      const Value v = open.back();
      if (again_.contains(v.index)) {
        open.pop_back();
        continue;
      }
      const std::size_t before = open.size();
      for (Value operand : program_.operands(v))
        if (is_recomputed(operand) && !again_.contains(operand.index)) open.push_back(operand);
      if (open.size() == before) again_.emplace(v.index, emit_again(v));
    }
    return again_.at(wanted.index);
  }

  Value emit_again(Value v) {
    const std::size_t segment = at_.segment[v.index];
    std::vector<Value> operands;
    for (Value operand : program_.operands(v)) {
      if (is_recomputed(operand)) operands.push_back(again_.at(operand.index));
      else if (operand == at_.cuts[segment]) operands.push_back(barrier(segment));
      else operands.push_back(rebuild_.of(operand));
    }
    return rebuild_.emit(program_.op(v), operands, program_.attributes(v));
  }

  /// The value at the beginning of a segment, not before the cotangent at its end.
  Value barrier(std::size_t segment) {
    std::optional<Value>& value = barriers_[segment];
    if (!value)
      value = rebuild_.emit(ops::op_after, {rebuild_.of(at_.cuts[segment]), rebuild_.of(*entries_[segment])});
    return *value;
  }

  const Program& program_;
  RecomputationOptions options_;
  Segments at_;
  Rebuild rebuild_;
  std::vector<std::optional<Value>> entries_, barriers_;
  std::unordered_map<std::uint32_t, Value> again_;
};

}  // namespace

std::size_t count_segments(const Program& program, std::size_t forward_outputs, std::size_t stride) {
  return Segments(program, forward_outputs, stride).count();
}

Program with_recomputation(const Program& program, const RecomputationOptions& options) {
  return Recomputation(program, options).run();
}

}  // namespace loipe
