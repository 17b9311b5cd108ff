// SPDX-License-Identifier: Apache-2.0
#include "tasks/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/interpreter.h"
#include "ir/verifier.h"
#include "tasks/inputs.h"

namespace loipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Tasks, AreFoundByNameAndAlias) {
  for (const Task& task : all_tasks()) {
    EXPECT_EQ(&find_task(task.name), &task);
    for (const std::string& alias : task.aliases) EXPECT_EQ(&find_task(alias), &task);
    EXPECT_FALSE(task.summary.empty());
  }
  EXPECT_EQ(find_task("KerrSenn_metric").name, "KerrSenn");
  EXPECT_EQ(find_task("CloudSchemes_step").name, "CloudSchemes");
  EXPECT_THAT(message_of([] { find_task("Encodr"); }),
              AllOf(HasSubstr("'Encodr'"), HasSubstr("did you mean 'Encoder'")));
}

TEST(Tasks, VerifyInEverySizeAndDtype) {
  for (const Task& task : all_tasks())
    for (DType dtype : {DType::f32, DType::f64}) {
      verify(task.build({.scale = task.has_scale ? 3 : 1, .batch = 2, .dtype = dtype}));
      verify(task.build({.dtype = dtype}));
    }
}

TEST(Tasks, RefuseWrongOptions) {
  const auto build = [](const char* name, TaskOptions options) {
    return message_of([&] { find_task(name).build(options); });
  };
  EXPECT_THAT(build("Encoder", {.scale = 0}), AllOf(HasSubstr("'Encoder'"), HasSubstr("scale 0")));
  EXPECT_THAT(build("Encoder", {.scale = -2}), HasSubstr("scale -2"));
  EXPECT_THAT(build("Hole", {.scale = 2}), AllOf(HasSubstr("'Hole'"), HasSubstr("scale 2")));
  EXPECT_THAT(build("g", {.batch = 0}), AllOf(HasSubstr("'g'"), HasSubstr("batch 0")));
  EXPECT_THAT(build("g", {.dtype = DType::i32}), HasSubstr("expected f32 or f64"));
}

TEST(Tasks, ScaleAndBatchAxisExistWhereTheyArePublished) {
  std::vector<std::string> scaled, batched;
  for (const Task& task : all_tasks()) {
    if (task.has_scale) scaled.push_back(task.name);
    if (task.has_batch_axis) batched.push_back(task.name);
  }
  EXPECT_THAT(scaled, testing::ElementsAre("Perceptron", "Encoder", "EncoderDecoder"));
  EXPECT_THAT(batched, testing::ElementsAre("RoeFlux_3d", "BlackScholes_Jacobian", "g", "Perceptron"));
  EXPECT_THAT(find_task("Perceptron").batched_arguments, testing::ElementsAre("x", "y"));
  EXPECT_EQ(find_task("RoeFlux_3d").batched_arguments.size(), 6U);
  EXPECT_EQ(find_task("RobotArm_6DOF").batched_arguments.size(), 6U);
}

// Inputs --------------------------------------------------------------------

bool is_finite(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (!std::isfinite(tensor.at(i))) return false;
  return true;
}

TEST(TaskInputs, FitTheProgram) {
  for (const Task& task : all_tasks())
    for (InputKind kind : {InputKind::rich, InputKind::published}) {
      SCOPED_TRACE(task.name);
      const TaskOptions options{.scale = task.has_scale ? 2 : 1, .batch = task.has_batch_axis ? 3 : 1};
      EXPECT_NO_THROW(check_arguments(task.build(options), task_inputs(task, options, kind, 1)));
    }
}

TEST(TaskInputs, OfSeveralExamplesHaveALeadingAxisWhereTheProgramHasNone) {
  const std::vector<Tensor> inputs = task_inputs(find_task("f"), {.batch = 3}, InputKind::rich, 1);
  EXPECT_EQ(inputs[0].shape(), (Shape{3, 4}));
  EXPECT_EQ(inputs[1].shape(), (Shape{3, 2, 3}));
}

TEST(TaskInputs, DependOnTheSeedAlone) {
  for (const Task& task : all_tasks()) {
    const auto draw = [&](std::uint64_t seed, DType dtype) {
      return task_inputs(task, {.batch = 2, .dtype = dtype}, InputKind::rich, seed);
    };
    EXPECT_EQ(draw(1, DType::f64), draw(1, DType::f64));
    EXPECT_NE(draw(1, DType::f64), draw(2, DType::f64));
    const std::vector<Tensor> wide = draw(1, DType::f64), narrow = draw(1, DType::f32);
    for (std::size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(narrow[i], wide[i].converted(DType::f32));
  }
}

/// Regular points: finite results for every seed, and no two examples alike.
TEST(TaskInputs, RichOnesAreRegular) {
  for (const Task& task : all_tasks()) {
    SCOPED_TRACE(task.name);
    const Program program = task.build({.dtype = DType::f64});
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const auto inputs = task_inputs(task, {.dtype = DType::f64}, InputKind::rich, seed);
      for (const Tensor& output : evaluate(program, inputs))
        EXPECT_TRUE(is_finite(output)) << "seed " << seed;
    }
  }
}

TEST(TaskInputs, PublishedOnesAreSingularForOneTask) {
  std::vector<std::string> singular;
  for (const Task& task : all_tasks()) {
    const auto outputs = evaluate(task.build({.dtype = DType::f64}),
                                  task_inputs(task, {.dtype = DType::f64}, InputKind::published, 1));
    if (!std::ranges::all_of(outputs, is_finite)) singular.push_back(task.name);
  }
  EXPECT_THAT(singular, testing::ElementsAre("g"));
}

bool is_constant_in_networks(const std::string& argument) {
  return argument.starts_with("gamma") || argument.starts_with("beta");
}

TEST(TaskInputs, ExamplesDiffer) {
  for (const Task& task : all_tasks()) {
    const std::vector<Tensor> inputs = task_inputs(task, {.batch = 2}, InputKind::rich, 3);
    const std::vector<Argument> arguments = task.arguments({});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = arguments[i].name;
      if (std::ranges::find(task.batched_arguments, name) == task.batched_arguments.end()) continue;
      if (task.inputs.point.empty() && is_constant_in_networks(name)) continue;
      EXPECT_NE(inputs[i].at(0), inputs[i].at(inputs[i].element_count() / 2)) << task.name << " " << name;
    }
  }
}

TEST(TaskInputs, PublishedOnes) {
  const auto roe =
      task_inputs(find_task("RoeFlux_3d"), {.batch = 2, .dtype = DType::f64}, InputKind::published, 1);
  EXPECT_EQ(roe[1].at(2), 0.3);
  EXPECT_EQ(roe[2].at(0), 0.5);
  EXPECT_LT(roe[2].at(1), 0.5);
  EXPECT_GT(roe[2].at(1), 0.0);
  EXPECT_DOUBLE_EQ(roe[1].at(5) / roe[2].at(1), 0.6);  // one factor for all arguments
  const auto encoder =
      task_inputs(find_task("Encoder"), {.scale = 2, .dtype = DType::f64}, InputKind::published, 1);
  EXPECT_EQ(encoder[0].at(17), 1.0);
  EXPECT_EQ(encoder[12].at(0), 0.0);
  EXPECT_EQ(encoder[13].at(0), 1.0);
}

TEST(TaskInputs, RichNetworksFollowTheRecipe) {
  const auto inputs =
      task_inputs(find_task("Encoder"), {.scale = 8, .dtype = DType::f64}, InputKind::rich, 1);
  double squares = 0;
  for (double element : inputs[2].elements<double>()) squares += element * element;
  EXPECT_NEAR(squares, 32.0, 4.0);  // 32 x 32 entries of variance 1 / 32
  EXPECT_EQ(inputs[12].at(0), 1.1);
  EXPECT_EQ(inputs[13].at(0), -0.2);
}

}  // namespace
}  // namespace loipe
