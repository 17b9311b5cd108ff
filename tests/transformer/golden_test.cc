// SPDX-License-Identifier: Apache-2.0
// Loss, output and all gradients of whole transformers against files that PyTorch's autograd
// wrote in float64: six kept here, all of them where the reference data are at hand.
#include <gtest/gtest.h>
#include <loipe/derivative.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "driver/transformer_file.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const char* folder : {"/tests/data/transformer", "/../shared/data/attention"})
    if (const fs::path path = LOIPE_SOURCE_DIR + std::string(folder); fs::exists(path))
      for (const fs::directory_entry& entry : fs::directory_iterator(path))
        if (const std::string stem = entry.path().stem();
            stem.starts_with("gpt_") || stem.starts_with("stack_") || stem.starts_with("bert_"))
          files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Derivative gradient_of(const TransformerFile& model, const DerivativeOptions& extra = {}) {
  DerivativeOptions options = extra;
  options.of = {0};
  for (const Argument& argument : model.arguments)
    if (argument.name != "target") options.wrt.push_back(argument.name);
  return derivative_of_function(
      DerivativeKind::gradient, [&](std::span<const Traced> a) { return model.traced(a); }, model.arguments,
      options);
}

/// Largest deviation over the largest entry of the array, or over `floor`.
double deviation(const Tensor& actual, const Tensor& expected, double floor) {
  if (actual.element_count() != expected.element_count()) return INFINITY;
  double worst = 0, largest = floor;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    worst = std::max(worst, std::abs(actual.at(i) - expected.at(i)));
    largest = std::max(largest, std::abs(expected.at(i)));
  }
  return worst / largest;
}

struct Result {
  std::string name;
  Tensor actual, expected;
};

std::vector<Result> results_of(const TransformerFile& model, const std::string& path,
                               const DerivativeOptions& options) {
  const SafetensorsFile file = SafetensorsFile::read(path);
  const DerivativeResult result = gradient_of(model, options)(model.inputs);
  std::vector<Result> results{{"loss", result.outputs[0], file.tensor("loss")},
                              {"output", result.outputs[1], file.tensor("output")}};
  std::size_t next = 0;
  for (const Argument& argument : model.arguments) {
    if (argument.name == "target") continue;
    const std::string name = argument.name == "X" ? "X" : argument.name.substr(7);
    results.push_back({name, result.derivatives[next++], file.tensor("grad." + name)});
  }
  return results;
}

class GoldenTransformer : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTransformer, LossOutputAndGradients) {
  for (DType dtype : {DType::f64, DType::f32}) {
    const TransformerFile model = read_transformer(GetParam(), dtype);
    double largest = 0;
    const std::vector<Result> results = results_of(model, GetParam(), {});
    for (const Result& r : results)
      for (std::int64_t i = 0; i < r.expected.element_count(); ++i)
        largest = std::max(largest, std::abs(r.expected.at(i)));
    for (const Result& r : results)
      EXPECT_LT(deviation(r.actual, r.expected, 1e-3 * largest), dtype == DType::f64 ? 1e-9 : 1e-4)
          << r.name << " in " << to_string(dtype);
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  const bool is_kept = info.param.find("/tests/data/") != std::string::npos;
  return fs::path(info.param).stem().string() + (is_kept ? "_kept" : "");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTransformer, ::testing::ValuesIn(golden_files()), test_name);

/// Forward and mixed orders go through the same flow.
TEST(Transformer, EveryOrderHasTheSameGradient) {
  const std::string path =
      LOIPE_SOURCE_DIR "/tests/data/transformer/stack_m1_full_nores_ce_d8_h2.safetensors";
  const TransformerFile model = read_transformer(path, DType::f64);
  for (const char* order : {"reverse", "markowitz", "random:3"})
    for (const Result& r : results_of(model, path, {.order = order}))
      EXPECT_LT(deviation(r.actual, r.expected, 1e-9), 1e-9) << r.name << " in order " << order;
}

/// A memory limit changes what is computed again, and no bit of the results.
TEST(Transformer, MemoryLimitsChangeNoBit) {
  const TransformerModel small{.layers = 4, .heads = 2, .width = 16, .causal = true};
  TransformerFile model;
  model.model = small;
  model.tokens = 64;
  model.arguments = {{"X", {DType::f32, {64, 16}}}, {"target", {DType::f32, {64, 16}}}};
  for (Argument& weight : transformer_weights(small, DType::f32))
    model.arguments.push_back({"weight." + weight.name, weight.type});
  for (const Argument& argument : model.arguments) {
    Tensor tensor(argument.type);
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      tensor.set(i,
                 0.3 * std::sin(static_cast<double>(i * (i + 3)) + static_cast<double>(model.inputs.size())));
    model.inputs.push_back(std::move(tensor));
  }
  const Derivative kept = gradient_of(model);
  const DerivativeResult expected = kept(model.inputs);
  std::size_t least = kept.peak_bytes();
  for (std::size_t limit = kept.peak_bytes() - 1;; limit -= limit / 6) try {
      const Derivative recomputed = gradient_of(model, {.memory_limit = limit, .recompute = true});
      EXPECT_LE(recomputed.peak_bytes(), limit);
      least = std::min(least, recomputed.peak_bytes());
      const DerivativeResult actual = recomputed(model.inputs);
      for (std::size_t k = 0; k < expected.derivatives.size(); ++k)
        EXPECT_TRUE(std::ranges::equal(actual.derivatives[k].bytes(), expected.derivatives[k].bytes()))
            << model.arguments[k].name << " with " << limit << " bytes";
    } catch (const ResourceError&) {
      break;
    }
  EXPECT_LT(least, 3 * kept.peak_bytes() / 4);
}

TEST(Transformer, AnyTracedLoss) {
  const TransformerModel model{.arch = TransformerArch::stack, .heads = 2, .width = 4};
  std::vector<Argument> arguments{{"X", {DType::f64, {3, 4}}}};
  for (Argument& weight : transformer_weights(model, DType::f64)) arguments.push_back(weight);
  const auto loss = [&](std::span<const Traced> a) {
    return std::vector<Traced>{logsumexp(transformer(model, a[0], a.subspan(1)))};
  };
  std::vector<Tensor> at;
  for (const Argument& argument : arguments) {
    at.emplace_back(argument.type);
    for (std::int64_t i = 0; i < at.back().element_count(); ++i)
      at.back().set(i, std::cos(static_cast<double>(7 * i) + static_cast<double>(at.size())));
  }
  const Derivative gradient = derivative_of_function(DerivativeKind::gradient, loss, arguments);
  const DerivativeResult at_point = gradient(at);
  constexpr double kStep = 1e-6;
  for (std::size_t k = 0; k < at.size(); ++k) {
    std::vector<Tensor> moved = at;
    moved[k].set(2, at[k].at(2) + kStep);
    const double above = gradient(moved).outputs[0].at(0);
    moved[k].set(2, at[k].at(2) - kStep);
    const double below = gradient(moved).outputs[0].at(0);
    EXPECT_NEAR(at_point.derivatives[k].at(2), (above - below) / (2 * kStep), 1e-8) << arguments[k].name;
  }
}

TEST(Transformer, ModelsThatCannotBeAreRefused) {
  const auto refused = [](const TransformerModel& model, const std::string& part) {
    try {
      transformer_weights(model, DType::f32);
      ADD_FAILURE() << "not refused: " << part;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused({.heads = 3, .width = 8}, "3 heads do not divide the width 8");
  refused({.heads = 0, .width = 8}, "heads is 0");
  refused({.layers = -1, .width = 8}, "layers is -1");
  refused({.arch = TransformerArch::bert, .width = 8, .norm_eps = 0}, "norm_eps is 0");
  refused({.heads = 4, .width = 8, .key_heads = 3}, "no multiple of 3 key heads");
  refused({.arch = TransformerArch::stack, .heads = 2, .width = 8, .value_size = 3}, "expected the width 8");
}

}  // namespace
}  // namespace loipe
