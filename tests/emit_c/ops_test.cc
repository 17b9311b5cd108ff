// SPDX-License-Identifier: Apache-2.0
// Law: the C source of every op, in both forms that it may have, is the op.
#include "backends/c/elementwise.h"
#include "backends/c/loops.h"
#include "compiled_sources.h"
#include "ir/op_def.h"
#include "passes/expansion/expansion.h"

namespace loipe {
namespace {

bool is_emitted(const OpDef& op) { return op.name.value != "argument" && op.name.value != "custom"; }

/// Calls at regular and special points. Elementwise ops are many and have shapes in common: of their
/// regular ones each has some.
std::vector<Sample> samples_of(const OpDef& op, std::size_t number) {
  constexpr std::size_t kStep = 5;
  Rng rng(23);
  std::vector<Sample> samples = op.samples.value(rng);
  if (c::is_elementwise(op.name.value)) {
    std::vector<Sample> kept;
    for (std::size_t i = number % kStep; i < samples.size(); i += kStep) kept.push_back(samples[i]);
    samples = std::move(kept);
  }
  if (op.special_points)
    for (Sample& sample : op.special_points(rng)) samples.push_back(std::move(sample));
  return samples;
}

struct Call {
  const OpDef* op;
  Sample sample;
};

/// As loops, or in the form that is chosen for the program.
enum class Form : std::uint8_t { loops, chosen };

void expect_ops(const std::string& compiler, DType dtype, Form form) {
  CompiledSources sources(compiler);
  std::vector<Call> calls;
  std::size_t number = 0;
  for (const OpDef* op : all_ops()) {
    if (!is_emitted(*op)) continue;
    for (Sample& given : samples_of(*op, number++)) {
      Sample sample = dtype == DType::f32 ? in_single_precision(given) : std::move(given);
      const Program program = one_node_program(*op, sample);
      if (form == Form::chosen) sources.add(program);
      else sources.add(program, c::emit_loops(passes::expansion(program), sources.names(program), {}));
      calls.push_back({op, std::move(sample)});
    }
  }
  sources.compile(compiler == "gcc" ? "-O1" : "-O0");
  for (std::size_t k = 0; k < sources.size() && !::testing::Test::HasFatalFailure(); ++k) {
    const auto& [op, sample] = calls[k];
    SCOPED_TRACE(std::string(op->name.value) + " {" + sample.attributes.print() + "}, source " +
                 std::to_string(k));
    const bool is_exact = op->tolerance.value == Tolerance::exact;
    sources.expect_reference(k, sample.operands, is_exact ? 0 : 1e-14, is_exact ? 0 : 1e-6);
  }
}

class EmittedOps : public WithCompiler {
 protected:
  /// Each compiler sees both forms, each form both dtypes.
  DType other(DType dtype) const {
    const bool is_gcc = std::string(GetParam()) == "gcc";
    return is_gcc == (dtype == DType::f64) ? DType::f32 : DType::f64;
  }
};
INSTANTIATE_TEST_SUITE_P(Compilers, EmittedOps, ::testing::Values("gcc", "clang-19"), compiler_name);

TEST_P(EmittedOps, AreTheOpsAsLoops) { expect_ops(GetParam(), other(DType::f32), Form::loops); }
TEST_P(EmittedOps, AreTheOpsInTheChosenForm) { expect_ops(GetParam(), other(DType::f64), Form::chosen); }

}  // namespace
}  // namespace loipe
