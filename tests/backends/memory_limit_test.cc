// SPDX-License-Identifier: Apache-2.0
// Law: the number of bytes that a refusal names is enough, one less is not, and results are the same.
#include <loipe/loipe.h>

#include <functional>

#include "backends/backend_testing.h"
#include "driver/task_jacobian.h"
#include "tasks/inputs.h"

namespace loipe {
namespace {

/// What compiling under a limit of one byte asks for.
std::size_t named_bytes(const std::function<void()>& compile) {
  try {
    compile();
  } catch (const ResourceError& error) {
    const std::string text = error.what();
    const std::size_t number = text.rfind(' ', text.find(" bytes") - 1) + 1;
    return std::stoull(text.substr(number));
  }
  ADD_FAILURE() << "a limit of one byte is not refused";
  return 0;
}

struct Case {
  const char* task;
  std::int64_t scale, batch;
  DerivativeKind kind = DerivativeKind::jacobian;
  BlockValues values = BlockValues::all;
};

/// Programs over vectors of examples, example by example, and with an axis of examples of their own.
constexpr Case kCases[] = {
    {"RoeFlux_1d", 0, 512},
    {"RobotArm_6DOF", 0, 7},
    {"RobotArm_6DOF", 0, 300, DerivativeKind::jacobian, BlockValues::entries},
    {"HumanHeartDipole", 0, 33, DerivativeKind::jvp},
    {"BlackScholes_Jacobian", 0, 40},
    {"Perceptron", 1, 64},
    {"Perceptron", 16, 9},
    {"Encoder", 1, 3},
    {"Encoder", 4, 5},
    {"Encoder", 4, 5, DerivativeKind::vjp},
    {"Encoder", 8, 2, DerivativeKind::jacobian, BlockValues::entries},
    {"Encoder", 8, 1},
};

TaskJacobianOptions options_of(const Case& c, const Subject& subject, int threads) {
  TaskJacobianOptions options;
  options.kind = c.kind;
  options.threads = threads;
  options.block_values = c.values;
  options.batch = plan_batch(subject, {});
  return options;
}

std::vector<Tensor> inputs_of(const TaskJacobian& jacobian) {
  Rng rng(3);
  std::vector<Tensor> inputs;
  for (const TensorType& type : jacobian.input_types()) {
    inputs.emplace_back(type);
    for (std::int64_t i = 0; i < inputs.back().element_count(); ++i) inputs.back().set(i, rng.uniform(1, 2));
  }
  return inputs;
}

TEST(MemoryLimit, TheNumberThatTasksAskForIsTheNumberThatPasses) {
  for (const Case& c : kCases)
    for (int threads : {1, 2, 3}) {
      SCOPED_TRACE(std::string(c.task) + " at scale " + std::to_string(c.scale) + ", batch " +
                   std::to_string(c.batch) + ", " + to_string(c.kind) + ", threads " +
                   std::to_string(threads));
      const Subject subject({c.task, c.scale > 0 ? std::optional(c.scale) : std::nullopt, c.batch});
      TaskJacobianOptions options = options_of(c, subject, threads);
      const TaskJacobian free(subject, options);
      options.memory_limit = 1;
      const std::size_t least = named_bytes([&] { TaskJacobian(subject, options); });
      EXPECT_LE(least, free.peak_bytes());
      options.memory_limit = least - 1;
      EXPECT_THROW(TaskJacobian(subject, options), ResourceError);
      options.memory_limit = least;
      const TaskJacobian limited(subject, options);
      EXPECT_LE(limited.peak_bytes(), least);
      if (threads > 1) {  // there is nothing that one thread could do with less
        options.threads = 1;
        options.memory_limit = least - 1;
        EXPECT_THROW(TaskJacobian(subject, options), ResourceError);
      }
      const std::vector<Tensor> inputs = inputs_of(free);
      EXPECT_TRUE(limited.run(inputs) == free.run(inputs));
    }
}

TEST(MemoryLimit, TheNumberThatDerivativesAskForIsTheNumberThatPasses) {
  const auto scalars = [](auto x, auto w) { return sin(x * w) / (1.0 + x * x); };
  const auto layers = [](auto x, auto w) { return tanh(matmul(w, tanh(matmul(w, x)))); };
  const auto check = [](const auto& f, const TensorType& x, const TensorType& w, std::int64_t batch,
                        const char* backend) {
    SCOPED_TRACE(to_string(x) + ", batch " + std::to_string(batch) + " on " + backend);
    const auto peak_within = [&](std::size_t limit) {
      return jacobian(
                 f, {{"x", x}, {"w", w}},
                 {.backend = backend, .threads = 2, .memory_limit = limit, .batch = batch, .shared = {"w"}})
          .peak_bytes();
    };
    const std::size_t least = named_bytes([&] { peak_within(1); });
    EXPECT_LE(peak_within(least), least);
    EXPECT_LE(least, peak_within(0));
    EXPECT_THROW(peak_within(least - 1), ResourceError);
  };
  for (const char* backend : {"jit", "reference"})
    for (std::int64_t batch : {1, 2, 100}) {
      check(scalars, {DType::f64, {3}}, {DType::f64, {3}}, batch, backend);
      check(layers, {DType::f32, {48, 4}}, {DType::f32, {48, 48}}, batch, backend);
    }
}

}  // namespace
}  // namespace loipe
