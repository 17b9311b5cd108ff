// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "orders/published/test_data.h"

/// Published and traced graphs as lines of text, one for each vertex, so that a
/// difference reads like one.
namespace loipe::test {

using Json = published::test::Json;

/// The inputs' names and the exponents; see tests/data/tasks/README.md.
inline const Json& names_and_powers() {
  static const Json json = published::test::read_json("../tasks/names_and_powers.json");
  return json;
}

inline std::string list_text(const std::vector<std::int64_t>& numbers) {
  return to_string(std::span(numbers));
}

/// " name=[1,2]", or nothing for an empty list.
inline std::string parameter_text(const char* name, const std::vector<std::int64_t>& numbers) {
  return numbers.empty() ? "" : " " + std::string(name) + "=" + list_text(numbers);
}

/// A published parameter: a list, or one number for the last axis.
inline std::vector<std::int64_t> list_of(const Json& parameters, const char* name) {
  if (!parameters.contains(name)) return {};
  const Json& json = parameters[name];
  if (json.is_number()) return {json.get<std::int64_t>()};
  return json.get<std::vector<std::int64_t>>();
}

/// What the published vertex says about its parameters.
inline std::string published_parameters(const Json& vertex, const std::string& primitive, int power) {
  const Json none = Json::object();
  const Json& p = vertex.size() > 3 ? vertex[3] : none;
  if (primitive == "integer_pow") return " y=" + std::to_string(power);
  if (primitive == "concatenate") return " axis=" + std::to_string(p["dim"].get<int>());
  if (primitive == "dot_general") {
    const auto contract = p["contract"].get<std::vector<std::vector<std::int64_t>>>();
    const auto batch = p["batch"].get<std::vector<std::vector<std::int64_t>>>();
    return parameter_text("lhs", contract[0]) + parameter_text("rhs", contract[1]) +
           parameter_text("lhs_batch", batch[0]) + parameter_text("rhs_batch", batch[1]);
  }
  return parameter_text("axes", list_of(p, "axes")) + parameter_text("dims", list_of(p, "dims")) +
         parameter_text("perm", list_of(p, "perm")) + parameter_text("start", list_of(p, "start")) +
         parameter_text("limit", list_of(p, "limit"));
}

/// The graph file gives a slice of a matrix by its last axis where the other is whole.
inline std::vector<std::int64_t> shown_range(const std::vector<std::int64_t>& range, bool last_axis_only) {
  return last_axis_only ? std::vector{range.back()} : range;
}

inline std::string traced_parameters(const Program& program, Value node, bool last_axis_only) {
  const std::string name(program.op(node).name.value);
  const Attributes& a = program.attributes(node);
  const auto list = [&](const char* attribute) {
    return a.has(attribute) ? a.integers(attribute) : Integers{};
  };
  if (name == "integer_pow") return " y=" + std::to_string(a.integer("y"));
  if (name == "concatenate") return " axis=" + std::to_string(a.integer("axis"));
  if (name == "dot_general")
    return parameter_text("lhs", list("lhs_contract")) + parameter_text("rhs", list("rhs_contract")) +
           parameter_text("lhs_batch", list("lhs_batch")) + parameter_text("rhs_batch", list("rhs_batch"));
  if (name == "slice")
    return parameter_text("start", shown_range(list("start"), last_axis_only)) +
           parameter_text("limit", shown_range(list("limit"), last_axis_only));
  return parameter_text("axes", list("axes")) + parameter_text("dims", list("dimensions")) +
         parameter_text("perm", list("permutation"));
}

inline std::string line_of(int number, const std::string& primitive, const std::vector<std::string>& operands,
                           const Shape& shape, const std::string& parameters) {
  return std::to_string(number) + " " + primitive + " " + join(operands, ",") + " " + list_text(shape) +
         parameters;
}

inline std::string published_operand(const Json& operand) {
  return operand.is_number() ? "#" + format_double(operand.get<double>()) : operand.get<std::string>();
}

inline std::vector<std::string> published_lines(const std::string& task) {
  std::vector<std::string> lines;
  const Json& powers = names_and_powers()[task]["powers"];
  int number = 0;
  for (const Json& vertex : published::test::all_graphs()[task]["vertices"]) {
    const std::string key = std::to_string(++number);
    const auto primitive = vertex[0].get<std::string>();
    std::vector<std::string> operands;
    for (const Json& operand : vertex[1]) operands.push_back(published_operand(operand));
    const int power = powers.contains(key) ? powers[key].get<int>() : 0;
    lines.push_back(line_of(number, primitive, operands, vertex[2].get<Shape>(),
                            published_parameters(vertex, primitive, power)));
  }
  return lines;
}

/// x1 for the first argument, v1 for the first vertex, #0.5 for a constant.
inline std::string traced_operand(const Program& program, const std::vector<int>& vertices, Value operand) {
  if (vertices[operand.index] > 0) return "v" + std::to_string(vertices[operand.index]);
  if (&program.op(operand) == &constant_op())
    return "#" + format_double(program.attributes(operand).tensor("value").at(0));
  const auto arguments = program.arguments();
  return "x" + std::to_string(std::find(arguments.begin(), arguments.end(), operand) - arguments.begin() + 1);
}

inline std::vector<std::string> traced_lines(const Program& program, bool last_axis_only) {
  std::vector<std::string> lines;
  const std::vector<int> vertices = program.vertex_numbers();
  for (std::uint32_t index = 0; index < program.size(); ++index) {
    const Value node{index};
    if (vertices[index] == 0) continue;
    std::vector<std::string> operands;
    for (Value operand : program.operands(node))
      operands.push_back(traced_operand(program, vertices, operand));
    lines.push_back(line_of(vertices[index], std::string(program.op(node).name.value), operands,
                            program.shape(node), traced_parameters(program, node, last_axis_only)));
  }
  return lines;
}

}  // namespace loipe::test
