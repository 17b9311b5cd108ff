// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>

#include "base/check.h"
#include "fuzz/fuzz_target.h"
#include "ir/interpreter.h"
#include "ir/op_def.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace loipe::testing {

namespace {

constexpr std::int64_t kMostOperations = 20'000;

/// Elements read and written, and scalar operations; absent beyond the limit.
std::optional<std::int64_t> work_of(const Program& program) {
  std::int64_t work = 0;
  const auto add = [&work](std::int64_t amount) {
    work = amount > kMostOperations ? kMostOperations + 1 : work + std::max<std::int64_t>(amount, 0);
  };
  for (std::uint32_t i = 0; i < program.size() && work <= kMostOperations; ++i) {
    const Value value{i};
    std::vector<const TensorType*> operands;
    for (Value operand : program.operands(value)) operands.push_back(&program.type(operand));
    add(program.type(value).element_count());
    add(program.op(value).cost.value({operands, program.attributes(value), program.type(value)}).total());
  }
  return work <= kMostOperations ? std::optional(work) : std::nullopt;
}

/// Numbers of both signs, zeros, large ones, infinities, NaN.
std::vector<Tensor> hostile_arguments(const Program& program) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNumbers[] = {0.5,
                                 -1,
                                 0,
                                 2.75,
                                 -0.0,
                                 1e30,
                                 -3,
                                 kInfinity,
                                 1,
                                 1e-40,
                                 -kInfinity,
                                 7,
                                 std::numeric_limits<double>::quiet_NaN()};
  std::size_t next = 0;
  std::vector<Tensor> arguments;
  for (Value argument : program.arguments()) {
    Tensor tensor(program.type(argument));
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      tensor.set(i, kNumbers[next++ % std::size(kNumbers)]);
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

}  // namespace

/// A text that parses is a program that verifies; its text is a fixed point of
/// reading and printing, and the interpreter evaluates it where that is little work.
void fuzz_ir_text(std::span<const std::uint8_t> bytes) {
  const std::string text(bytes.begin(), bytes.end());
  std::optional<Program> program;
  if (is_refused([&] { program = program_from_text(text); })) return;
  verify(*program);
  const std::string printed = program_to_text(*program);
  require(program_to_text(program_from_text(printed)) == printed, "a printed program reads back as another");
  if (!work_of(*program)) return;
  is_refused([&] { evaluate(*program, hostile_arguments(*program)); });
}

}  // namespace loipe::testing
