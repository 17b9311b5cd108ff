// SPDX-License-Identifier: Apache-2.0
#include "ops/recorded/einsum_spec.h"

#include <algorithm>

namespace loipe {

namespace {

[[noreturn]] void fail(std::string_view text, const std::string& expected) {
  throw UserError("spec \"" + std::string(text) + "\": expected " + expected);
}

Label letter(std::string_view text, char c) {
  if (c >= 'a' && c <= 'z') return static_cast<Label>(c - 'a');
  if (c >= 'A' && c <= 'Z') return static_cast<Label>(c - 'A' + 26);
  fail(text, std::string("a letter instead of '") + c + "'");
}

}  // namespace

EinsumSpec EinsumSpec::parse(std::string_view text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) fail(text, "'->' between the operands and the result");
  EinsumSpec spec;
  spec.operands.emplace_back();
  for (char c : text.substr(0, arrow)) {
    if (c == ',') spec.operands.emplace_back();
    else spec.operands.back().push_back(letter(text, c));
  }
  for (char c : text.substr(arrow + 2)) {
    const Label label = letter(text, c);
    if (std::find(spec.result.begin(), spec.result.end(), label) != spec.result.end())
      fail(text, "each result label once");
    spec.result.push_back(label);
  }
  return spec;
}

std::string EinsumSpec::print() const {
  std::string text;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i) text += ",";
    for (Label label : operands[i]) text += label_name(label);
  }
  text += "->";
  for (Label label : result) text += label_name(label);
  return text;
}

EinsumPlan::EinsumPlan(std::string_view text, std::span<const TensorType* const> operands)
    : spec(EinsumSpec::parse(text)), extents(52, -1) {
  if (spec.operands.size() != operands.size())
    fail(text, "labels for " + std::to_string(operands.size()) + " operands");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorType& type = *operands[i];
    if (spec.operands[i].size() != type.shape.size())
      fail(text, std::to_string(type.rank()) + " labels for operand " + std::to_string(i));
    for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
      std::int64_t& extent = extents[spec.operands[i][axis]];
      if (extent >= 0 && extent != type.shape[axis])
        fail(text, "one extent for label '" + label_name(spec.operands[i][axis]) + "', got " +
                       std::to_string(extent) + " and " + std::to_string(type.shape[axis]));
      extent = type.shape[axis];
    }
    if (type.dtype == DType::boolean) masks.push_back(i);
    else if (is_floating(type.dtype)) factors.push_back(i);
    else fail(text, "floating operands and bool masks");
  }
  if (factors.empty()) fail(text, "a floating operand");
  for (std::size_t i : factors)
    if (operands[i]->dtype != operands[factors[0]]->dtype) fail(text, "floating operands of one dtype");
  labels = spec.result;
  for (Label label : labels)
    if (extents[label] < 0) fail(text, "every result label in an operand");
  for (Label label = 0; label < extents.size(); ++label)
    if (extents[label] >= 0 && std::find(labels.begin(), labels.end(), label) == labels.end())
      labels.push_back(label);
}

}  // namespace loipe
