// SPDX-License-Identifier: Apache-2.0
// The programs, evaluated by the reference interpreter, give the values of the golden
// files, which JAX computed from its own formulation of every task.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "ir/interpreter.h"
#include "tasks/task.h"
#include "tensor/safetensors.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(LOIPE_SOURCE_DIR) / ".." / "shared" / "data" / "jacobians";

/// One golden file: "TASK[_scaleS][_rl|_rich|_ones].safetensors".
struct Golden {
  explicit Golden(const fs::path& path) : file(SafetensorsFile::read(path)) {
    std::string stem = path.stem();
    for (const char* suffix : {"_rl", "_rich", "_ones"})
      if (stem.ends_with(suffix)) stem.resize(stem.size() - std::string(suffix).size());
    if (const auto place = stem.find("_scale"); place != std::string::npos) {
      options.scale = std::stoll(stem.substr(place + 6));
      stem.resize(place);
    }
    task = &find_task(stem);
    batched = "," + file.metadata().at("batched") + ",";
  }

  bool is_batched(const std::string& argument) const {
    return batched.find("," + argument + ",") != std::string::npos;
  }
  std::int64_t examples() const { return batched == ",," ? 1 : 4; }

  SafetensorsFile file;
  const Task* task = nullptr;
  TaskOptions options{.dtype = DType::f64};
  std::string batched;
};

/// Example `index` of a tensor with a leading batch axis, in a shape of that size.
Tensor example_of(const Tensor& batch, std::int64_t index, const Shape& shape) {
  const auto size = static_cast<std::size_t>(element_count(shape));
  return Tensor::of<double>(shape,
                            batch.elements<double>().subspan(static_cast<std::size_t>(index) * size, size));
}

void expect_near(const Tensor& actual, std::span<const double> expected) {
  const std::span<const double> values = actual.elements<double>();
  ASSERT_EQ(values.size(), expected.size());
  double largest = 0;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-12 * largest);
}

std::vector<Tensor> golden_outputs(const Golden& golden, const Program& program) {
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < program.outputs().size(); ++i)
    outputs.push_back(golden.file.tensor("out." + std::to_string(i)));
  EXPECT_FALSE(golden.file.has("out." + std::to_string(outputs.size())));
  return outputs;
}

/// The program of one example (batch 1 where it has a batch axis), example by example.
void check_examples(const Golden& golden) {
  const Program program = golden.task->build(golden.options);
  const std::vector<Tensor> expected = golden_outputs(golden, program);
  for (std::int64_t example = 0; example < golden.examples(); ++example) {
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < program.arguments().size(); ++i) {
      const std::string& name = program.argument_name(i);
      const Tensor tensor = golden.file.tensor("in." + name);
      const Shape& shape = program.shape(program.arguments()[i]);
      arguments.push_back(golden.is_batched(name) ? example_of(tensor, example, shape) : tensor);
    }
    const std::vector<Tensor> outputs = evaluate(program, arguments);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto all = expected[i].elements<double>();
      const std::size_t size = all.size() / static_cast<std::size_t>(golden.examples());
      expect_near(outputs[i], all.subspan(static_cast<std::size_t>(example) * size, size));
    }
  }
}

/// All examples at once, on the batch axis of the program.
void check_batch(const Golden& golden) {
  TaskOptions options = golden.options;
  options.batch = golden.examples();
  const Program program = golden.task->build(options);
  const std::vector<Tensor> expected = golden_outputs(golden, program);
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    arguments.push_back(golden.file.tensor("in." + program.argument_name(i)));
  const std::vector<Tensor> outputs = evaluate(program, arguments);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs[i].type(), expected[i].type());
    expect_near(outputs[i], expected[i].elements<double>());
  }
}

TEST(TaskValues, AgreeWithTheGoldenFiles) {
  if (!fs::exists(kFolder)) GTEST_SKIP() << "the golden files are not here: " << kFolder;
  std::map<std::string, int> files;  // by task
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".safetensors") continue;
    SCOPED_TRACE(entry.path().filename());
    const Golden golden(entry.path());
    ++files[golden.task->name];
    check_examples(golden);
    if (golden.task->has_batch_axis) check_batch(golden);
  }
  EXPECT_EQ(files.size(), all_tasks().size());
}

}  // namespace
}  // namespace loipe
