// SPDX-License-Identifier: Apache-2.0
// Without any one of the passes of the back end: the same results, most of them bit by bit.
#include <functional>
#include <initializer_list>
#include <map>

#include "backends/backend_testing.h"
#include "driver/pipeline.h"
#include "orders/order.h"
#include "tasks/inputs.h"
#include "tasks/task.h"

namespace loipe {
namespace {

/// An accumulation program on which every pass has something to do, and its arguments.
struct Subject {
  Program program;
  std::vector<Tensor> arguments;
};

Subject encoder_in_forward_order(DType dtype) {
  const Task& task = find_task("Encoder");
  const TaskOptions options{.scale = 4, .batch = 1, .dtype = dtype};
  const Program primal = task.build(options);
  CompileOptions compiling;
  compiling.request.order = resolve_order("forward", primal, task.name);
  compiling.request.wrt = floating_arguments(primal);
  return {accumulate_and_optimise(primal, compiling).optimised,
          task_inputs(task, options, InputKind::rich, 3)};
}

struct Outcome {
  std::vector<Tensor> results;
  std::map<std::string, BackendPassReport, std::less<>> reports;
  std::size_t peak_bytes;
};

Outcome run_without(const Subject& subject, const DisabledPasses& disabled) {
  Outcome outcome;
  const auto executable = find_backend("jit").compile(
      subject.program, {.threads = 2, .disabled = disabled, .report = [&](const BackendPassReport& report) {
                          outcome.reports.emplace(report.pass.name, report);
                        }});
  outcome.results = run_guarded(*executable, subject.arguments);
  outcome.peak_bytes = executable->peak_bytes();
  return outcome;
}

class Passes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, Passes, testing::Values(DType::f32, DType::f64),
                         [](const auto& dtype) { return std::string(to_string(dtype.param)); });

TEST_P(Passes, EachCanBeLeftOut) {
  const Subject subject = encoder_in_forward_order(GetParam());
  const Outcome all = run_without(subject, {});
  for (const BackendPassInfo& pass : all_backend_passes()) {
    SCOPED_TRACE(std::string(pass.name));
    const std::string name(pass.name);
    const Outcome without = run_without(subject, DisabledPasses({name}));
    EXPECT_FALSE(without.reports.contains(name)) << "it ran all the same";
    if (pass.summary.find("rounds otherwise") != std::string_view::npos) {
      expect_agreement(without.results, all.results, 1e-12, 1e-4);
      continue;
    }
    EXPECT_TRUE(without.results == all.results) << "other bits";
    const auto report = all.reports.find(name);
    if (report == all.reports.end()) continue;  // kernels, where there is no LLVM
    EXPECT_GT(report->second.after, 0);
    EXPECT_GE(report->second.seconds, 0);
    EXPECT_NE(report->second.text, "");
  }
}

TEST_P(Passes, WhatTheyAreForIsGoneWithoutThem) {
  const Subject subject = encoder_in_forward_order(GetParam());
  const Outcome all = run_without(subject, {});
  EXPECT_GT(run_without(subject, DisabledPasses({"buffer_reuse"})).peak_bytes, all.peak_bytes);
  EXPECT_GT(run_without(subject, DisabledPasses({"tiling"})).peak_bytes, all.peak_bytes);
  EXPECT_LT(all.reports.at("fusion").after, all.reports.at("fusion").before);
  EXPECT_LT(all.reports.at("buffer_reuse").after, all.reports.at("buffer_reuse").before);
}

/// Reductions whose operand is computed on the way, over axes before a short last one: compiled
/// together they have the bits of loops in memory.
TEST(Passes, ReductionsInKernelsKeepTheirBits) {
  for (const char* reduction : {"reduce_sum", "reduce_max", "reduce_min"})
    for (const Integers& axes : {Integers{1}, Integers{0, 2}, Integers{1, 2}})
      for (const DType dtype : {DType::f32, DType::f64}) {
        SCOPED_TRACE(std::string(reduction) + " over " + to_string(axes) + " " +
                     std::string(to_string(dtype)));
        Builder b;
        const TensorType type{dtype, {32, 20, 24, 37}};
        const Value x = b.argument("x", type), y = b.argument("y", type);
        const Value product = b.emit("mul", {b.emit("sub", {x, y}), y});
        const Value sum = b.emit(reduction, {product}, {{"axes", axes}});
        Subject subject{b.finish({sum, b.emit("exp", {sum}), b.emit("neg", {product})}), {}};
        Rng rng(6);
        for (int i = 0; i < 2; ++i) {
          subject.arguments.emplace_back(type);
          for (std::int64_t k = 0; k < type.element_count(); ++k)
            subject.arguments.back().set(k, rng.normal());
        }
        const Outcome compiled = run_without(subject, DisabledPasses({"tiling"}));
        const Outcome in_memory = run_without(subject, DisabledPasses({"tiling", "kernels"}));
        EXPECT_TRUE(compiled.results == in_memory.results);
        expect_agreement(compiled.results, evaluate(subject.program, subject.arguments), 1e-12, 1e-4);
        if (const auto kernels = compiled.reports.find("kernels"); kernels->second.after > 0) {
          EXPECT_NE(kernels->second.text.find("before the last"), std::string::npos) << "not compiled";
        }
      }
}

TEST(Passes, BatchesRunExampleByExampleWithoutVectors) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {3}});
  const Program program = b.finish({b.emit("exp", {b.emit("mul", {x, x})})});
  const Backend& jit = find_backend("jit");
  DisabledPasses disabled;
  disabled.add(BackendPass::example_vectors);
  EXPECT_FALSE(jit.compile(program, {.batch = 8, .disabled = disabled})->vectorises_examples());
  EXPECT_FALSE(jit.vectorises_examples(program, {.batch = 8, .disabled = disabled}));
}

TEST(Passes, AnUnknownNameIsRefusedWithTheNearest) {
  for (const std::string name : {"fussion", "tillage", ""}) {
    try {
      DisabledPasses({name});
      FAIL() << name;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).find("did you mean 'fusion'") != std::string::npos,
                name == "fussion");
      EXPECT_NE(std::string(error.what()).find("buffer_reuse"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace loipe
