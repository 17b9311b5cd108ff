// SPDX-License-Identifier: Apache-2.0
// What `loipe jacobian` writes: names, shapes, dtypes, batches and sparse formats.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "cli/command_line.h"
#include "tensor/safetensors.h"

namespace loipe::test {
namespace {

SafetensorsFile jacobian(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  const std::string out = folder / "out.safetensors";
  arguments.insert(arguments.begin(), "jacobian");
  arguments.insert(arguments.end(), {"--out", out});
  const Outcome result = run_ok(arguments);
  EXPECT_EQ(result.out + result.err, "");
  return SafetensorsFile::read(out);
}

bool is_result(const std::string& name) { return name.starts_with("out.") || name.starts_with("jac."); }

double largest(const Tensor& tensor) {
  double result = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result = std::max(result, std::abs(tensor.at(i)));
  return result;
}

/// Elements first, first + 1, ... of `actual` against all of `expected`.
void expect_near(const Tensor& actual, std::int64_t first, const Tensor& expected, double tolerance) {
  ASSERT_LE(first + expected.element_count(), actual.element_count());
  for (std::int64_t i = 0; i < expected.element_count(); ++i)
    ASSERT_NEAR(actual.at(first + i), expected.at(i), tolerance * largest(expected)) << "element " << i;
}

/// The inputs of a golden file, those that are batched cut to one example.
void write_example(const SafetensorsFile& file, std::int64_t index, const std::string& path) {
  const std::string batched = "," + file.metadata().at("batched") + ",";
  NamedTensors tensors;
  for (const std::string& name : file.names()) {
    if (!name.starts_with("in.")) continue;
    const Tensor tensor = file.tensor(name);
    if (batched.find("," + name.substr(3) + ",") == std::string::npos) {
      tensors.emplace_back(name, tensor);
      continue;
    }
    const Shape shape(tensor.shape().begin() + 1, tensor.shape().end());
    const auto size = static_cast<std::size_t>(element_count(shape));
    tensors.emplace_back(name, Tensor::of<double>(shape, tensor.elements<double>().subspan(
                                                             static_cast<std::size_t>(index) * size, size)));
  }
  write_safetensors(path, tensors);
}

/// A batch is its examples, one by one: for programs with and without the axis.
TEST(JacobianCommand, BatchEqualsSingleExamples) {
  const TemporaryFolder folder;
  for (const std::string name : {"RoeFlux_1d", "RoeFlux_3d", "Perceptron_scale1_rich", "f", "g"}) {
    SCOPED_TRACE(name);
    const std::string task = name.starts_with("Perceptron") ? "Perceptron" : name;
    const SafetensorsFile input = SafetensorsFile::read(golden(name));
    const SafetensorsFile whole = jacobian(folder, {task, "--inputs", golden(name), "--batch", "4"});
    for (std::int64_t k = 0; k < 4; ++k) {
      write_example(input, k, folder / "one.safetensors");
      const SafetensorsFile one = jacobian(folder, {task, "--inputs", folder / "one.safetensors"});
      EXPECT_EQ(one.names(), whole.names());
      for (const std::string& result : one.names()) {
        SCOPED_TRACE(result);
        Shape shape = one.type(result).shape;
        shape.insert(shape.begin(), 4);
        EXPECT_EQ(whole.type(result).shape, shape);
        expect_near(whole.tensor(result), k * element_count(one.type(result).shape), one.tensor(result),
                    1e-12);
      }
    }
  }
}

TEST(JacobianCommand, SharedArgumentsOfABatch) {
  const TemporaryFolder folder;
  write_safetensors(folder / "in.safetensors",
                    {{"in.x", Tensor::of<double>({3}, {.1, .2, .3})}, {"in.y", Tensor::scalar(.5F)}});
  const SafetensorsFile file =
      jacobian(folder, {"Simple", "--inputs", folder / "in.safetensors", "--batch", "3", "--batched", "x"});
  EXPECT_EQ(file.type("jac.0.y").shape, Shape{3});
  for (std::int64_t k = 0; k < 3; ++k) {
    const double x = .1 * static_cast<double>(k + 1), y = .5;
    EXPECT_NEAR(file.tensor("jac.0.y").at(k), x * std::cos(x * y) + x, 1e-14);
    EXPECT_NEAR(file.tensor("jac.1.x").at(k), y / std::tan(x * y), 1e-12);
  }
  EXPECT_EQ(file.metadata().at("batched"), "x");
  // Without metadata and --batched, every argument has the axis.
  write_safetensors(folder / "all.safetensors", {{"in.x", Tensor::of<double>({2}, {.1, .2})},
                                                 {"in.y", Tensor::of<double>({2}, {.5, .6})}});
  EXPECT_EQ(jacobian(folder, {"Simple", "--inputs", folder / "all.safetensors", "--batch", "2"})
                .type("out.1")
                .shape,
            Shape{2});
}

TEST(JacobianCommand, Dtypes) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments{"Encoder", "--inputs", golden("Encoder_scale1_rich")};
  const auto with = [&](const std::string& dtype) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--dtype", dtype});
    return jacobian(folder, all);
  };
  EXPECT_EQ(jacobian(folder, arguments).type("jac.0.WQ1"), (TensorType{DType::f64, {2, 4, 4}}));
  EXPECT_EQ(with("f32").type("jac.0.WQ1"), (TensorType{DType::f32, {2, 4, 4}}));
  EXPECT_EQ(with("f64").type("out.0"), (TensorType{DType::f64, {2}}));
  write_safetensors(folder / "single.safetensors",
                    {{"in.x", Tensor::scalar(.1F)}, {"in.y", Tensor::scalar(.5F)}});
  EXPECT_EQ(jacobian(folder, {"Simple", "--inputs", folder / "single.safetensors"}).type("out.0").dtype,
            DType::f32);
}

TEST(JacobianCommand, WrtAndOrders) {
  const TemporaryFolder folder;
  const std::string input = golden("KerrSenn_metric");
  const SafetensorsFile all = jacobian(folder, {"KerrSenn", "--inputs", input, "--batch", "4"});
  const SafetensorsFile some = jacobian(
      folder, {"KerrSenn", "--inputs", input, "--batch", "4", "--wrt", "theta,r", "--order", "random:5"});
  EXPECT_EQ(std::ranges::count_if(some.names(), is_result), 15);
  for (const std::string& name : some.names()) expect_near(some.tensor(name), 0, all.tensor(name), 1e-13);
}

/// Scatters a sparse block back; entries outside of the pattern are zero.
Tensor dense_of_coo(const SafetensorsFile& file, const std::string& name, const TensorType& type,
                    std::int64_t examples, std::int64_t columns) {
  Tensor dense(type);
  const Tensor rows = file.tensor(name + ".rows"), cols = file.tensor(name + ".cols"),
               values = file.tensor(name + ".values");
  const std::int64_t size = type.element_count() / examples;
  for (std::int64_t example = 0; example < examples; ++example)
    for (std::int64_t i = 0; i < rows.element_count(); ++i)
      dense.set(example * size + static_cast<std::int64_t>(rows.at(i)) * columns +
                    static_cast<std::int64_t>(cols.at(i)),
                values.at(example * rows.element_count() + i));
  return dense;
}

TEST(JacobianCommand, SparseFormatsHoldTheDenseBlocks) {
  const TemporaryFolder folder;
  for (const std::string name :
       {"RoeFlux_1d", "RoeFlux_3d", "f", "Perceptron_scale1_rich", "KerrSenn_metric"}) {
    SCOPED_TRACE(name);
    const std::string task = name.starts_with("Perceptron") ? "Perceptron" : name;
    const SafetensorsFile input = SafetensorsFile::read(golden(name));
    const std::vector<std::string> base{task, "--inputs", golden(name), "--batch", "4", "--format"};
    const auto formatted = [&](const std::string& format) {
      std::vector<std::string> all = base;
      all.push_back(format);
      return jacobian(folder, all);
    };
    const SafetensorsFile dense = formatted("dense"), coo = formatted("coo"), csr = formatted("csr");
    for (const std::string& block : dense.names()) {
      if (!block.starts_with("jac.")) continue;
      SCOPED_TRACE(block);
      const std::size_t out_rank = dense.type(block.substr(0, 5).replace(0, 3, "out")).shape.size();
      const Shape& shape = dense.type(block).shape;
      const std::int64_t columns = element_count(std::span(shape).subspan(out_rank));
      EXPECT_EQ(dense_of_coo(coo, block, dense.type(block), 4, columns), dense.tensor(block));
      EXPECT_EQ(csr.tensor(block + ".indices"), coo.tensor(block + ".cols"));
      EXPECT_EQ(csr.tensor(block + ".data"), coo.tensor(block + ".values"));
      EXPECT_EQ(coo.type(block + ".rows").dtype, DType::i32);
      const Tensor indptr = csr.tensor(block + ".indptr");
      EXPECT_EQ(indptr.element_count(), element_count(std::span(shape).subspan(1, out_rank - 1)) + 1);
      EXPECT_EQ(indptr.at(indptr.element_count() - 1), coo.type(block + ".rows").shape[0]);
    }
  }
}

TEST(JacobianCommand, SparseProgram) {
  const TemporaryFolder folder;
  write_safetensors(folder / "in.safetensors", {{"in.x", Tensor::of<double>({6}, {1, 2, 3, 4, 5, 6})}});
  const SafetensorsFile file = jacobian(
      folder, {example("rosenbrock.loipe"), "--inputs", folder / "in.safetensors", "--format", "csr"});
  EXPECT_EQ(file.tensor("jac.0.x.indptr"), Tensor::of<std::int32_t>({6}, {0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(file.tensor("jac.0.x.indices"), Tensor::of<std::int32_t>({10}, {0, 1, 1, 2, 2, 3, 3, 4, 4, 5}));
  // d/dx1 of 100 (x2 - x1^2)^2 + (1 - x1)^2 at (1, 2) is -400, d/dx2 is 200.
  EXPECT_EQ(file.tensor("jac.0.x.data").at(0), -400);
  EXPECT_EQ(file.tensor("jac.0.x.data").at(1), 200);
}

TEST(JacobianCommand, IntegerArgumentsOfAProgram) {
  const TemporaryFolder folder;
  write_safetensors(folder / "in.safetensors", {{"in.X", Tensor({DType::f64, {8, 3}})},
                                                {"in.w", Tensor({DType::f64, {3}})},
                                                {"in.b", Tensor({DType::f64, {1}})},
                                                {"in.label", Tensor({DType::i32, {8}})},
                                                {"in.other", Tensor({DType::i32, {1}})}});
  const SafetensorsFile file =
      jacobian(folder, {example("logistic_regression.loipe"), "--inputs", folder / "in.safetensors"});
  EXPECT_EQ(file.type("jac.1.b"), (TensorType{DType::f64, {}}));
  EXPECT_DOUBLE_EQ(file.tensor("jac.1.b").at(0), 4);
  EXPECT_FALSE(file.has("jac.1.label"));
}

/// An interrupt ends a long run without a trace of its output.
TEST(JacobianCommand, InterruptLeavesNoFile) {
  const TemporaryFolder folder;
  NamedTensors inputs;
  for (const char* name : {"x", "y"})
    inputs.emplace_back(std::string("in.") + name, Tensor({DType::f64, {1'000'000}}));
  write_safetensors(folder / "in.safetensors", inputs);
  const Process process({"jacobian", "Simple", "--batch", "1000000", "--backend", "reference", "--inputs",
                         folder / "in.safetensors", "--out", folder / "out.safetensors"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(JacobianCommand, ThreadsDoNotChangeResults) {
  const TemporaryFolder folder;
  const std::vector<std::string> base{"Encoder",  "--scale", "2", "--inputs", golden("Encoder_scale2_rich"),
                                      "--threads"};
  std::vector<std::string> one = base, two = base;
  one.emplace_back("1");
  two.emplace_back("2");
  const SafetensorsFile a = jacobian(folder, one);
  const SafetensorsFile b = jacobian(folder, two);
  for (const std::string& name : a.names()) EXPECT_EQ(a.tensor(name), b.tensor(name)) << name;
}

/// f64 stays f64 even where another input is f32.
TEST(JacobianCommand, TheWidestInputDecides) {
  const TemporaryFolder folder;
  write_text(folder / "f.loipe", "program f(%x: f64[2], %y: f64[2]) {\n  %r = mul(%x, %y)\n  return %r\n}\n");
  write_safetensors(folder / "in",
                    {{"in.x", Tensor::of<float>({2}, {1, 2})}, {"in.y", Tensor::of<double>({2}, {0.1, 3})}});
  const SafetensorsFile file = jacobian(folder, {folder / "f.loipe", "--inputs", folder / "in"});
  EXPECT_EQ(file.tensor("jac.0.x"), Tensor::of<double>({2, 2}, {0.1, 0, 0, 3}));
}

}  // namespace
}  // namespace loipe::test
