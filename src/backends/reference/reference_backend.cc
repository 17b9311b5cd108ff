// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/reference_backend.h"

#include <algorithm>
#include <cstring>

#include "ir/interpreter.h"
#include "ir/op_def.h"

namespace loipe {

namespace {

/// The interpreter's largest sum of live tensors; it copies arguments and outputs.
std::size_t interpreter_peak(const Program& program) {
  std::vector<std::uint32_t> uses(program.size(), 0);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    for (Value operand : program.operands(Value{i})) ++uses[operand.index];
  std::size_t live = 0;
  for (Value output : program.outputs()) {
    ++uses[output.index];
    live += program.type(output).byte_size();
  }
  for (Value argument : program.arguments()) live += 2 * program.type(argument).byte_size();
  std::size_t peak = live;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (&program.op(Value{i}) == &argument_op() || uses[i] == 0) continue;
    live += program.type(Value{i}).byte_size();
    peak = std::max(peak, live);
    for (Value operand : program.operands(Value{i}))
      if (--uses[operand.index] == 0) live -= program.type(operand).byte_size();
  }
  return peak;
}

class ReferenceExecutable final : public Executable {
 public:
  explicit ReferenceExecutable(const Program& program)
      : Executable(program), program_(program), peak_bytes_(interpreter_peak(program)) {}

  std::size_t peak_bytes() const override { return peak_bytes_; }

 private:
  void run_checked(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const override {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      tensors.emplace_back(argument_types()[i]);
      std::ranges::copy(arguments[i], tensors.back().bytes().begin());
    }
    const std::vector<Tensor> results = evaluate(program_, tensors);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::ranges::copy(results[i].bytes(), outputs[i].begin());
  }

  Program program_;
  std::size_t peak_bytes_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string_view summary() const override {
    return "the interpreter: slow, simple, the oracle of all tests";
  }
  std::vector<std::string> reasons_against(const Program&) const override { return {}; }

 private:
  std::unique_ptr<Executable> compile_supported(const Program& program,
                                                const BackendOptions&) const override {
    return std::make_unique<ReferenceExecutable>(program);
  }
};

}  // namespace

const Backend& reference_backend() {
  static const ReferenceBackend backend;
  return backend;
}

}  // namespace loipe
