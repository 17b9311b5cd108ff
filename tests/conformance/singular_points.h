// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "ir/op_def.h"

namespace loipe::testing {

/// A row of the table in docs/theory/singular_points.md.
struct SingularPoint {
  std::vector<double> value;
  /// One list per operand, row-major; empty for "-".
  std::vector<std::vector<double>> derivatives;
};

/// "2.5", "inf", "1/2" or a list "[0, 1/2]" of such numbers.
inline std::vector<double> parse_numbers(const std::string& text) {
  std::vector<double> numbers;
  const char* rest = text.c_str();
  while (*rest != 0) {
    char* end = nullptr;
    double number = std::strtod(rest, &end);
    if (end == rest) {
      ++rest;  // a bracket, comma or space
      continue;
    }
    if (*end == '/') number /= std::strtod(end + 1, &end);
    numbers.push_back(number);
    rest = end;
  }
  return numbers;
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

/// What stands between the back ticks of a cell.
inline std::string code_of(const std::string& cell) {
  const std::size_t first = cell.find('`'), last = cell.rfind('`');
  return first == last ? "" : cell.substr(first + 1, last - first - 1);
}

/// The table by call.
inline std::map<std::string, SingularPoint> read_singular_points(const std::string& path) {
  std::map<std::string, SingularPoint> table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() != 6 || code_of(cells[1]).empty() || code_of(cells[2]).empty()) continue;
    SingularPoint point{parse_numbers(code_of(cells[2])), {}};
    for (const std::string& part : split(code_of(cells[3]), ';'))
      point.derivatives.push_back(parse_numbers(part));
    table.emplace(code_of(cells[1]), std::move(point));
  }
  return table;
}

inline std::string print_number(double number) {
  if (number == 0.5) return "1/2";
  std::string text = format_double(number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

inline std::string print_operand(const Tensor& operand) {
  std::vector<std::string> entries;
  for (std::int64_t i = 0; i < operand.element_count(); ++i)
    entries.push_back(operand.dtype() == DType::boolean ? (operand.at(i) != 0 ? "true" : "false")
                                                        : print_number(operand.at(i)));
  return operand.shape().empty() ? entries[0] : "[" + join(entries, ", ") + "]";
}

/// "integer_pow(0; y=2)": how the table names a call.
inline std::string print_call(const OpDef& op, const Sample& sample) {
  std::vector<std::string> operands;
  for (const Tensor& operand : sample.operands) operands.push_back(print_operand(operand));
  const std::string attributes = sample.attributes.empty() ? "" : "; " + sample.attributes.print();
  return std::string(op.name.value) + "(" + join(operands, ", ") + attributes + ")";
}

}  // namespace loipe::testing
