// SPDX-License-Identifier: Apache-2.0
// Derivatives of random programs on both back ends: a batch is its examples one by one,
// and the compiled program gives what the interpreter gives.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "driver/derivative.h"
#include "support/dense_jacobian.h"
#include "support/random_program.h"

namespace loipe {
namespace {

using testing::random_arguments;
using testing::random_program;
using testing::relative_deviation;

constexpr std::int64_t kExamples = 5;

DerivativeRequest request_of(DerivativeKind kind, const Program& program, std::uint64_t seed) {
  DerivativeRequest request;
  request.kind = kind;
  request.wrt = floating_arguments(program);
  request.of.resize(program.outputs().size());
  std::iota(request.of.begin(), request.of.end(), std::size_t{0});
  if (has_directions(kind) && seed % 2 == 0) request.directions = 2;
  request.order = seed % 3 == 0 ? forward_order(program) : reverse_order(program);
  request.outer_order = is_second_order(kind) ? "forward" : "";
  return request;
}

/// The program's arguments, near which the program is smooth, and random seeds.
std::vector<Tensor> inputs_of(const Executable& executable, const Program& program, std::uint64_t seed,
                              std::int64_t example) {
  std::vector<Tensor> inputs = random_arguments(program, seed + 1000 * static_cast<std::uint64_t>(example));
  Rng rng(seed + 7 + static_cast<std::uint64_t>(example));
  for (std::size_t i = inputs.size(); i < executable.argument_types().size(); ++i) {
    inputs.emplace_back(executable.argument_types()[i]);
    for (std::int64_t e = 0; e < inputs[i].element_count(); ++e) inputs[i].set(e, rng.uniform(-1, 1));
  }
  return inputs;
}

/// All examples behind each other, as an array of structures.
std::vector<Tensor> run_batch(const Executable& executable,
                              const std::vector<std::vector<Tensor>>& examples) {
  std::vector<Tensor> inputs, results;
  const auto with_axis = [](TensorType type) {
    type.shape.insert(type.shape.begin(), kExamples);
    return type;
  };
  for (std::size_t i = 0; i < executable.argument_types().size(); ++i) {
    Tensor& all = inputs.emplace_back(with_axis(executable.argument_types()[i]));
    const std::int64_t size = examples[0][i].element_count();
    for (std::int64_t k = 0; k < kExamples; ++k)
      for (std::int64_t e = 0; e < size; ++e)
        all.set(k * size + e, examples[static_cast<std::size_t>(k)][i].at(e));
  }
  std::vector<ConstBytes> in;
  std::vector<Bytes> out;
  for (const TensorType& type : executable.output_types()) results.emplace_back(with_axis(type));
  for (const Tensor& tensor : inputs) in.push_back(tensor.bytes());
  for (Tensor& tensor : results) out.push_back(tensor.bytes());
  executable.run_batch(kExamples, in, std::vector<bool>(in.size(), false), out);
  return results;
}

void check(const Program& program, DerivativeKind kind, std::uint64_t seed) {
  SCOPED_TRACE(to_string(kind) + ", seed " + std::to_string(seed));
  const DerivativeRequest request = request_of(kind, program, seed);
  CompileOptions interpreted, compiled;
  interpreted.backend = "reference";
  compiled.backend_options = {.threads = 2, .batch = kExamples, .use_code_cache = false};
  const DerivativeCompilation reference = compile_derivative(program, request, interpreted);
  const DerivativeCompilation jit = compile_derivative(program, request, compiled);
  const Executable& executable = *jit.compilation.executable;
  std::vector<std::vector<Tensor>> examples;
  for (std::int64_t k = 0; k < kExamples; ++k) examples.push_back(inputs_of(executable, program, seed, k));
  const std::vector<Tensor> batch = run_batch(executable, examples);
  for (std::size_t k = 0; k < examples.size(); ++k) {
    const std::vector<Tensor> expected = reference.compilation.executable->run(examples[k]);
    const std::vector<Tensor> alone = executable.run(examples[k]);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(relative_deviation(alone[i], expected[i], 1.0), 1e-10) << "result " << i;
      const auto first = static_cast<std::int64_t>(k) * expected[i].element_count();
      for (std::int64_t e = 0; e < expected[i].element_count(); ++e)
        ASSERT_NEAR(batch[i].at(first + e), expected[i].at(e), 1e-10 * (1 + std::abs(expected[i].at(e))))
            << "result " << i << ", example " << k;
    }
  }
}

TEST(DerivativeBatches, AreOneByOneAndEqualTheInterpreter) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Program program = random_program(seed, {.nodes = 7});
    std::int64_t elements = 0;
    for (const Tensor& argument : random_arguments(program, seed)) elements += argument.element_count();
    check(program, DerivativeKind::jvp, seed);
    check(program, DerivativeKind::vjp, seed);
    if (elements <= 12) {
      check(program, DerivativeKind::hessian, seed);
      check(program, DerivativeKind::hvp, seed);
    }
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
}

}  // namespace
}  // namespace loipe
