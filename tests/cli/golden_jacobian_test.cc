// SPDX-License-Identifier: Apache-2.0
// Every golden Jacobian in several orders and both dtypes, through the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "driver/input_tensors.h"
#include "driver/task_jacobian.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;

/// The full set where it lies beside the sources, else the small one of the tests.
fs::path golden_folder() {
  const fs::path source = LOIPE_SOURCE_DIR;
  const fs::path shared = source / ".." / "shared" / "data" / "jacobians";
  return fs::exists(shared) ? shared : source / "tests" / "data" / "cli";
}

/// "TASK[_scaleS][_rl|_rich|_ones].safetensors"
struct Golden {
  explicit Golden(const fs::path& from) : file(SafetensorsFile::read(from)), path(from.string()) {
    std::string stem = from.stem();
    for (const char* suffix : {"_rl", "_ones", "_rich"})
      if (stem.ends_with(suffix)) {
        stem.resize(stem.size() - std::string(suffix).size());
        is_noise = std::string(suffix) != "_rich";
      }
    if (const auto place = stem.find("_scale"); place != std::string::npos) {
      request.scale = std::stoll(stem.substr(place + 6));
      stem.resize(place);
    }
    request.name = stem;
    const std::vector<std::string> batched = stored_batched(file);
    if (!batched.empty()) request.batch = file.type("in." + batched[0]).shape[0];
  }

  SafetensorsFile file;
  std::string path;
  SubjectRequest request;
  /// Most derivatives are rounding noise around an exact zero.
  bool is_noise = false;
};

double magnitude(const Tensor& tensor) {
  double result = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result = std::max(result, std::abs(tensor.at(i)));
  return result;
}

void expect_near(const Tensor& actual, const Tensor& expected, double allowed) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (std::int64_t i = 0; i < expected.element_count(); ++i)
    ASSERT_NEAR(actual.at(i), expected.at(i), allowed) << "element " << i;
}

void check(const Golden& golden, const std::string& order, DType dtype, const std::string& backend) {
  SCOPED_TRACE(golden.path + " " + order + " " + std::string(to_string(dtype)) + " " + backend);
  const Subject subject(golden.request);
  TaskJacobianOptions options;
  options.order = order;
  options.dtype = dtype;
  options.backend = backend;
  options.batch = plan_batch(subject, {}, stored_batched(golden.file));
  const TaskJacobian jacobian(subject, options);
  const std::vector<Tensor> results =
      jacobian.run(load_inputs(golden.file, golden.path, subject.argument_names(), jacobian.input_types()));
  double top = 0;
  for (const std::string& name : golden.file.names())
    if (name.starts_with("jac.")) top = std::max(top, magnitude(golden.file.tensor(name)));
  const double tolerance = dtype == DType::f64 ? 1e-9 : 2e-4;
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(jacobian.result_name(i));
    const Tensor expected = golden.file.tensor(jacobian.result_name(i));
    const double floor = golden.is_noise ? top : 1e-6 * top;
    expect_near(results[i], expected, tolerance * std::max(magnitude(expected), floor));
  }
}

void check_all_orders(const Golden& golden, const std::string& backend) {
  const Subject subject(golden.request);
  const bool is_large = subject.scale() > 2;
  for (const std::string& order : subject_order_names(subject)) {
    if (is_large && order != "reverse" && order != "alphagrad") continue;
    check(golden, order, DType::f64, backend);
    if (!golden.is_noise) check(golden, order, DType::f32, backend);
  }
  if (!is_large)
    for (const char* order : {"random:1", "random:2"}) check(golden, order, DType::f64, backend);
}

TEST(GoldenJacobians, OnTheFastBackEnd) {
  for (const fs::directory_entry& entry : fs::directory_iterator(golden_folder()))
    if (entry.path().extension() == ".safetensors") check_all_orders(Golden(entry.path()), "jit");
}

TEST(GoldenJacobians, OnTheReferenceBackEnd) {
  for (const fs::directory_entry& entry : fs::directory_iterator(golden_folder())) {
    if (entry.path().extension() != ".safetensors") continue;
    const Golden golden(entry.path());
    if (golden.request.scale.value_or(1) <= 2) check_all_orders(golden, "reference");
  }
}

/// Forward and Markowitz order multiply most there.
TEST(GoldenJacobians, ExpensiveOrdersAtScaleFour) {
  const fs::path path = golden_folder() / "Encoder_scale4_rich.safetensors";
  if (!fs::exists(path)) GTEST_SKIP() << "only with the full set of golden files";
  for (const char* order : {"forward", "markowitz", "markowitz-published"})
    check(Golden(path), order, DType::f64, "jit");
}

}  // namespace
}  // namespace loipe
