// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/builder.h"
#include "ir/interpreter.h"
#include "ir/op_def.h"

namespace loipe {

/// The kernels to test: all those that this CPU can run.
inline std::vector<std::string> simd_levels() {
  std::vector<std::string> levels;
  for (const char* level : {"baseline", "avx2", "avx512"}) {
    setenv("LOIPE_SIMD", level, 1);
    try {
      Builder b;
      find_backend("jit").compile(b.finish({b.scalar(1, DType::f64)}));
      levels.emplace_back(level);
    } catch (const UserError&) {
      // Not on this CPU.
    }
  }
  unsetenv("LOIPE_SIMD");
  return levels;
}

/// LOIPE_SIMD set while it lives.
class ForcedSimd {
 public:
  explicit ForcedSimd(const std::string& level) { setenv("LOIPE_SIMD", level.c_str(), 1); }
  ~ForcedSimd() { unsetenv("LOIPE_SIMD"); }
};

/// Memory with a guard zone on both sides, filled with something that no step writes.
class GuardedBytes {
 public:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::byte kFill{0xA5};
  explicit GuardedBytes(std::size_t size) : size_(size), bytes_(size + 2 * kGuard, kFill) {}
  Bytes inside() { return Bytes(bytes_).subspan(kGuard, size_); }
  bool is_intact() const {
    const auto is_fill = [](std::byte b) { return b == kFill; };
    return std::all_of(bytes_.begin(), bytes_.begin() + kGuard, is_fill) &&
           std::all_of(bytes_.end() - kGuard, bytes_.end(), is_fill);
  }
  bool operator==(const GuardedBytes&) const = default;

 private:
  std::size_t size_;
  std::vector<std::byte> bytes_;
};

/// Runs with guards around outputs and checks that arguments and guards are left alone.
inline std::vector<Tensor> run_guarded(const Executable& executable, const std::vector<Tensor>& arguments) {
  const std::vector<Tensor> before = arguments;
  std::vector<ConstBytes> argument_bytes;
  for (const Tensor& argument : arguments) argument_bytes.push_back(argument.bytes());
  std::vector<GuardedBytes> outputs;
  for (const TensorType& type : executable.output_types()) outputs.emplace_back(type.byte_size());
  std::vector<Bytes> output_bytes;
  for (GuardedBytes& output : outputs) output_bytes.push_back(output.inside());
  executable.run(argument_bytes, output_bytes);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].is_intact()) << "output " << i << " was written outside";
    results.emplace_back(executable.output_types()[i]);
    std::ranges::copy(outputs[i].inside(), results.back().bytes().begin());
  }
  for (std::size_t i = 0; i < arguments.size(); ++i)
    EXPECT_TRUE(arguments[i] == before[i]) << "argument " << i << " was written";
  return results;
}

/// Relative error that two correct evaluations may show, against the larger of 1
/// and the largest entry.
inline double allowed_error(DType dtype, double f64_error, double f32_error) {
  return dtype == DType::f64 ? f64_error : dtype == DType::f32 ? f32_error : 0;
}

/// What differs first, or "" if nothing does.
inline std::string difference(const Tensor& actual, const Tensor& expected, double error) {
  if (actual.type() != expected.type())
    return to_string(actual.type()) + " instead of " + to_string(expected.type());
  double scale = 1;
  for (std::int64_t i = 0; i < expected.element_count(); ++i)
    if (std::isfinite(expected.at(i))) scale = std::max(scale, std::abs(expected.at(i)));
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double a = actual.at(i), e = expected.at(i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    if (!(std::abs(a - e) <= error * scale))
      return "element " + std::to_string(i) + " of " + to_string(expected.type()) + " is " +
             std::to_string(a) + ", expected " + std::to_string(e) + ", difference " +
             std::to_string((a - e) / scale * 1e12) + "e-12";
  }
  return "";
}

inline void expect_agreement(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                             double f64_error, double f32_error) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_EQ(difference(actual[i], expected[i], allowed_error(expected[i].dtype(), f64_error, f32_error)),
              "")
        << "output " << i;
}

/// The program of one node; operands are arguments.
inline Program one_node_program(const OpDef& op, const Sample& sample) {
  Builder builder;
  std::vector<Value> operands;
  for (std::size_t i = 0; i < sample.operands.size(); ++i)
    operands.push_back(builder.argument("x" + std::to_string(i), sample.operands[i].type()));
  return builder.finish({builder.emit(op, operands, sample.attributes)});
}

/// One shape for all operands and the result, so that any other shape would do as well.
inline bool is_elementwise(const OpDef& op, const Sample& sample) {
  for (const Tensor& operand : sample.operands)
    if (operand.shape() != sample.operands[0].shape() || operand.shape().size() != 1 ||
        operand.element_count() < 2)
      return false;
  const Program program = one_node_program(op, sample);
  return !sample.operands.empty() && program.shape(program.outputs()[0]) == sample.operands[0].shape() &&
         op.name.value != "scatter" && op.name.value != "gather";
}

/// Gives the operands another shape, their elements repeated.
inline void repeat_operands(Sample& sample, const Shape& shape) {
  for (Tensor& operand : sample.operands) {
    Tensor longer(TensorType{operand.dtype(), shape});
    for (std::int64_t i = 0; i < longer.element_count(); ++i)
      longer.set(i, operand.at(i % operand.element_count()));
    operand = std::move(longer);
  }
}

/// The sample with its floating tensors in f32.
inline Sample in_single_precision(const Sample& sample) {
  Sample result = sample;
  for (Tensor& operand : result.operands)
    if (operand.dtype() == DType::f64) operand = operand.converted(DType::f32);
  for (const auto& [name, value] : sample.attributes.entries()) {
    if (const auto* dtype = std::get_if<DType>(&value); dtype && *dtype == DType::f64)
      result.attributes.set(name, DType::f32);
    if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&value);
        tensor && (*tensor)->dtype() == DType::f64)
      result.attributes.set(name, std::make_shared<const Tensor>((*tensor)->converted(DType::f32)));
  }
  return result;
}

}  // namespace loipe
