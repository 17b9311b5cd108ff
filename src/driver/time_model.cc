// SPDX-License-Identifier: Apache-2.0
#include "driver/time_model.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ir/op_def.h"

namespace loipe {

namespace {

constexpr double TimeConstants::* kFields[] = {
    &TimeConstants::launch, &TimeConstants::product,         &TimeConstants::sum,
    &TimeConstants::byte,   &TimeConstants::division,        &TimeConstants::function,
    &TimeConstants::scalar, &TimeConstants::scalar_division, &TimeConstants::scalar_function};

double times(std::int64_t count, double seconds) { return static_cast<double>(count) * seconds; }

class TimeModel {
 public:
  TimeModel(const Program& program, const TimeConstants& constants)
      : program_(program), constants_(constants) {}

  double seconds_of(Value node) {
    operands_.clear();
    bool is_scalar = program_.type(node).element_count() == 1;
    std::int64_t bytes = static_cast<std::int64_t>(program_.type(node).byte_size());
    for (Value operand : program_.operands(node)) {
      operands_.push_back(&program_.type(operand));
      is_scalar = is_scalar && program_.type(operand).element_count() == 1;
      bytes += static_cast<std::int64_t>(program_.type(operand).byte_size());
    }
    if (operands_.empty()) return 0;  // arguments and constants
    const OpCost cost =
        program_.op(node).cost.value({operands_, program_.attributes(node), program_.type(node)});
    return is_scalar ? of_scalars(cost) : of_arrays(node, cost, bytes);
  }

 private:
  double of_scalars(const OpCost& cost) const {
    return times(cost.multiplications + cost.additions, constants_.scalar) +
           times(cost.divisions, constants_.scalar_division) +
           times(cost.functions, constants_.scalar_function);
  }

  double of_arrays(Value node, const OpCost& cost, std::int64_t bytes) const {
    // A contraction does as many additions as multiplications; their pairs are one instruction.
    const bool contracts = cost.additions > 0 && cost.multiplications > 0;
    const double operations =
        times(cost.multiplications + cost.additions, contracts ? constants_.product : constants_.sum) +
        times(cost.divisions, constants_.division) + times(cost.functions, constants_.function);
    const bool is_view = cost.total() == 0 && program_.op(node).name.value == "reshape";
    if (is_view) return 0;
    return constants_.launch + std::max(operations, times(bytes, constants_.byte));
  }

  const Program& program_;
  const TimeConstants& constants_;
  std::vector<const TensorType*> operands_;
};

}  // namespace

double predicted_seconds(const Program& program, const TimeConstants& constants) {
  TimeModel model(program, constants);
  double seconds = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) seconds += model.seconds_of(Value{i});
  return seconds;
}

std::string to_text(const TimeConstants& constants) {
  std::string text;
  for (double TimeConstants::* const field : kFields) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), constants.*field).ptr;
    text += std::string(buffer.data(), end) + "\n";
  }
  return text;
}

std::optional<TimeConstants> time_constants_from_text(const std::string& text) {
  TimeConstants constants;
  const char* place = text.data();
  const char* const end = text.data() + text.size();
  for (double TimeConstants::* const field : kFields) {
    const auto [after, error] = std::from_chars(place, end, constants.*field);
    const bool is_sensible = error == std::errc{} && constants.*field >= 0 && constants.*field < 1;
    if (!is_sensible || after == end || *after != '\n') return std::nullopt;
    place = after + 1;
  }
  if (place != end) return std::nullopt;
  return constants;
}

}  // namespace loipe
