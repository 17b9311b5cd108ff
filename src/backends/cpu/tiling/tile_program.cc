// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiling/tile_program.h"

#include <map>
#include <string>
#include <unordered_map>

#include "ir/builder.h"

namespace loipe::cpu {

namespace {

class TileBuilder {
 public:
  TileBuilder(const Program& program, const Region& region, std::int64_t extent)
      : program_(program), region_(region), extent_(extent), builder_("tile") {}

  TileProgram run(const std::vector<bool>& is_needed_outside) {
    // Arguments come before all other nodes.
    for (Value node : region_.nodes) declare_inputs(node);
    for (Value node : region_.nodes) copy(node);
    std::vector<Value> outputs;
    for (Value node : region_.nodes)
      if (is_needed_outside[node.index]) {
        result_.outputs.push_back({node, region_.members.at(node.index).axis});
        outputs.push_back(copies_.at(node.index));
      }
    result_.program = builder_.finish(std::move(outputs));
    return std::move(result_);
  }

 private:
  using Input = TileProgram::Input;

  Shape sliced(Shape shape, std::int64_t axis) const {
    if (axis >= 0) shape[static_cast<std::size_t>(axis)] = extent_;
    return shape;
  }

  void declare(const Input& input) {
    const auto [place, is_new] = arguments_.try_emplace(input, Value{});
    if (!is_new) return;
    const TensorType type =
        input.axis == Input::kPositions
            ? TensorType{DType::i64, {extent_}}
            : TensorType{program_.type(input.value).dtype, sliced(program_.shape(input.value), input.axis)};
    place->second = builder_.argument("v" + std::to_string(arguments_.size()), type);
    result_.inputs.push_back(input);
  }

  void declare_inputs(Value node) {
    const Region::Member& member = region_.members.at(node.index);
    for (std::size_t k = 0; k < program_.operands(node).size(); ++k)
      if (const Value operand = program_.operands(node)[k]; !region_.contains(operand))
        declare({operand, member.flow.operand_axes[k]});
    if (member.flow.shifted_label) declare({Value{}, Input::kPositions});
  }

  void copy(Value node) {
    const Region::Member& member = region_.members.at(node.index);
    std::vector<Value> operands;
    for (std::size_t k = 0; k < program_.operands(node).size(); ++k) {
      const Value operand = program_.operands(node)[k];
      operands.push_back(region_.contains(operand) ? copies_.at(operand.index)
                                                   : arguments_.at({operand, member.flow.operand_axes[k]}));
    }
    if (member.flow.shifted_label) operands.push_back(arguments_.at({Value{}, Input::kPositions}));
    copies_[node.index] = builder_.emit(program_.op(node), operands,
                                        sliced_attributes(program_, node, member.axis, member.flow, extent_));
  }

  const Program& program_;
  const Region& region_;
  std::int64_t extent_;
  Builder builder_;
  std::map<Input, Value> arguments_;
  std::unordered_map<std::uint32_t, Value> copies_;
  TileProgram result_;
};

}  // namespace

TileProgram tile_program(const Program& program, const Region& region, std::int64_t extent,
                         const std::vector<bool>& is_needed_outside) {
  return TileBuilder(program, region, extent).run(is_needed_outside);
}

}  // namespace loipe::cpu
