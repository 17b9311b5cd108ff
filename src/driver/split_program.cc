// SPDX-License-Identifier: Apache-2.0
#include "driver/split_program.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "ir/builder.h"

namespace loipe {

namespace {

/// On what a node depends: the latest kind among its operands.
enum class Stage : std::uint8_t { constant, early, late };

std::vector<Stage> stages_of(const Program& program, std::size_t first_late_argument) {
  std::vector<Stage> stages(program.size(), Stage::constant);
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    stages[program.arguments()[i].index] = i < first_late_argument ? Stage::early : Stage::late;
  for (std::uint32_t i = 0; i < program.size(); ++i)
    for (Value operand : program.operands(Value{i})) stages[i] = std::max(stages[i], stages[operand.index]);
  return stages;
}

/// Copies nodes of a program into another one, each once.
class Copier {
 public:
  Copier(const Program& from, std::string name) : from_(from), builder_(std::move(name)) {}

  void add_argument(Value argument, const std::string& name) {
    copies_[argument.index] = builder_.argument(name, from_.type(argument));
  }
  bool has(Value value) const { return copies_.contains(value.index); }
  /// The copy of a node whose operands were copied.
  Value copy(Value node) {
    const auto [place, is_new] = copies_.try_emplace(node.index, Value{});
    if (!is_new) return place->second;
    std::vector<Value> operands;
    for (Value operand : from_.operands(node)) operands.push_back(copies_.at(operand.index));
    return copies_[node.index] = builder_.emit(from_.op(node), operands, from_.attributes(node));
  }
  Value of(Value node) const { return copies_.at(node.index); }
  Program finish(std::vector<Value> outputs) { return builder_.finish(std::move(outputs)); }

 private:
  const Program& from_;
  Builder builder_;
  std::unordered_map<std::uint32_t, Value> copies_;
};

/// Values of the early stage that the late part uses, in program order.
std::vector<Value> residuals_of(const Program& program, const std::vector<Stage>& stages,
                                std::span<const Value> late_outputs) {
  std::vector<bool> is_residual(program.size(), false);
  const auto note = [&](Value value) {
    if (stages[value.index] == Stage::early) is_residual[value.index] = true;
  };
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (stages[i] == Stage::late)
      for (Value operand : program.operands(Value{i})) note(operand);
  for (Value output : late_outputs) note(output);
  std::vector<Value> residuals;
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (is_residual[i]) residuals.push_back(Value{i});
  return residuals;
}

}  // namespace

SplitProgram split_program(const Program& program, std::size_t first_late_argument,
                           std::size_t first_late_output) {
  const std::vector<Stage> stages = stages_of(program, first_late_argument);
  const std::span<const Value> outputs = program.outputs();
  const std::span<const Value> late_outputs = outputs.subspan(first_late_output);
  const std::vector<Value> residuals = residuals_of(program, stages, late_outputs);
  Copier early(program, program.name() + ".point"), late(program, program.name() + ".linear");
  for (std::size_t i = 0; i < first_late_argument; ++i)
    early.add_argument(program.arguments()[i], program.argument_name(i));
  for (std::size_t i = 0; i < residuals.size(); ++i)
    late.add_argument(residuals[i], "residual." + std::to_string(i));
  for (std::size_t i = first_late_argument; i < program.arguments().size(); ++i)
    late.add_argument(program.arguments()[i], program.argument_name(i));
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (&program.op(Value{i}) == &argument_op()) continue;
    if (stages[i] != Stage::late) early.copy(Value{i});
    if (stages[i] != Stage::early) late.copy(Value{i});
  }
  std::vector<Value> early_outputs, linear_outputs;
  for (Value output : outputs.first(first_late_output)) {
    require(stages[output.index] != Stage::late, "an early output depends on a late argument");
    early_outputs.push_back(early.of(output));
  }
  for (Value residual : residuals) early_outputs.push_back(early.of(residual));
  for (Value output : late_outputs) linear_outputs.push_back(late.of(output));
  return {early.finish(std::move(early_outputs)), late.finish(std::move(linear_outputs))};
}

}  // namespace loipe
