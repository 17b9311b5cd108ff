// SPDX-License-Identifier: Apache-2.0
// The commands jvp, vjp, gradient, hessian and hvp: names, shapes, batches, formats,
// orders, and that all of them are what the Jacobian says.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/command_line.h"
#include "tensor/safetensors.h"

namespace loipe::test {
namespace {

SafetensorsFile derivative(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  const std::string out = folder / "out.safetensors";
  arguments.insert(arguments.end(), {"--out", out});
  const Outcome result = run_ok(arguments);
  EXPECT_EQ(result.out + result.err, "");
  return SafetensorsFile::read(out);
}

Tensor filled(const Shape& shape, double phase) {
  Tensor tensor(TensorType{DType::f64, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, std::sin(phase + static_cast<double>(i)));
  return tensor;
}

std::vector<std::string> names_of(const SafetensorsFile& file) {
  std::vector<std::string> names = file.names();
  std::ranges::sort(names);
  return names;
}

/// Inputs of the Rosenbrock example, with seeds for `directions` (0: no axis).
std::string rosenbrock_inputs(const TemporaryFolder& folder, std::int64_t directions) {
  const Shape axis = directions > 0 ? Shape{directions} : Shape{};
  const auto with_axis = [&](std::int64_t n) {
    Shape shape = axis;
    shape.push_back(n);
    return shape;
  };
  const std::string path = folder / "in.safetensors";
  write_safetensors(path, {{"in.x", filled({6}, 0.3)},
                           {"tangent.x", filled(with_axis(6), 1.1)},
                           {"cotangent.0", filled(with_axis(5), 2.2)}});
  return path;
}

TEST(DerivativeCommands, ProductsAreThoseOfTheJacobian) {
  const TemporaryFolder folder;
  const std::string program = example("rosenbrock.loipe");
  for (std::int64_t directions : {0, 1, 3})
    for (const std::string backend : {"jit", "reference"})
      for (const std::string order : {"forward", "reverse", "markowitz", "random:3"}) {
        SCOPED_TRACE(backend + " " + order + " " + std::to_string(directions));
        const std::string in = rosenbrock_inputs(folder, directions);
        const std::vector<std::string> options{program, "--inputs",  in,     "--order",
                                               order,   "--backend", backend};
        const auto run_kind = [&](const std::string& kind) {
          std::vector<std::string> arguments{kind};
          arguments.insert(arguments.end(), options.begin(), options.end());
          return derivative(folder, arguments);
        };
        const Tensor J = run_kind("jacobian").tensor("jac.0.x");
        const SafetensorsFile seeds = SafetensorsFile::read(in);
        const SafetensorsFile jvp = run_kind("jvp"), vjp = run_kind("vjp");
        EXPECT_EQ(names_of(jvp), (std::vector<std::string>{"jvp.0", "out.0"}));
        EXPECT_EQ(names_of(vjp), (std::vector<std::string>{"out.0", "vjp.x"}));
        const Shape axis = directions > 0 ? Shape{directions} : Shape{};
        Shape pushed_shape = axis, pulled_shape = axis;
        pushed_shape.push_back(5);
        pulled_shape.push_back(6);
        EXPECT_EQ(jvp.type("jvp.0").shape, pushed_shape);
        EXPECT_EQ(vjp.type("vjp.x").shape, pulled_shape);
        const Tensor pushed = jvp.tensor("jvp.0"), pulled = vjp.tensor("vjp.x");
        const Tensor v = seeds.tensor("tangent.x"), u = seeds.tensor("cotangent.0");
        for (std::int64_t d = 0; d < std::max<std::int64_t>(directions, 1); ++d) {
          for (std::int64_t i = 0; i < 5; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < 6; ++j) sum += J.at(6 * i + j) * v.at(6 * d + j);
            EXPECT_NEAR(pushed.at(5 * d + i), sum, 1e-11);
          }
          for (std::int64_t j = 0; j < 6; ++j) {
            double sum = 0;
            for (std::int64_t i = 0; i < 5; ++i) sum += J.at(6 * i + j) * u.at(5 * d + i);
            EXPECT_NEAR(pulled.at(6 * d + j), sum, 1e-11);
          }
        }
      }
}

TEST(DerivativeCommands, HessiansInEveryFormatAndTheirProducts) {
  const TemporaryFolder folder;
  const std::string program = example("rosenbrock.loipe"), in = rosenbrock_inputs(folder, 0);
  for (const std::string outer : {"forward", "reverse"}) {
    const SafetensorsFile dense =
        derivative(folder, {"hessian", program, "--inputs", in, "--outer-order", outer});
    EXPECT_EQ(names_of(dense), (std::vector<std::string>{"hess.0.x.x", "jac.0.x", "out.0"}));
    const Tensor H = dense.tensor("hess.0.x.x");
    ASSERT_EQ(H.shape(), (Shape{5, 6, 6}));
    const SafetensorsFile inputs = SafetensorsFile::read(in);
    const Tensor x = inputs.tensor("in.x"), v = inputs.tensor("tangent.x");
    for (std::int64_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(H.at(36 * i + 7 * i), 1200 * x.at(i) * x.at(i) - 400 * x.at(i + 1) + 2, 1e-10);
      EXPECT_NEAR(H.at(36 * i + 7 * i + 1), -400 * x.at(i), 1e-10);
      EXPECT_NEAR(H.at(36 * i + 7 * i + 6), -400 * x.at(i), 1e-10);
    }
    const SafetensorsFile csr =
        derivative(folder, {"hessian", program, "--inputs", in, "--outer-order", outer, "--format", "csr"});
    const Tensor rows = csr.tensor("hess.0.x.x.indptr"), columns = csr.tensor("hess.0.x.x.indices"),
                 data = csr.tensor("hess.0.x.x.data");
    EXPECT_EQ(rows.element_count(), 5 * 6 + 1);
    EXPECT_LE(data.element_count(), 40);
    Tensor again(H.type());
    for (std::int64_t row = 0; row < 30; ++row)
      for (auto e = static_cast<std::int64_t>(rows.at(row)); e < static_cast<std::int64_t>(rows.at(row + 1));
           ++e)
        again.set(6 * row + static_cast<std::int64_t>(columns.at(e)), data.at(e));
    for (std::int64_t e = 0; e < H.element_count(); ++e) EXPECT_EQ(again.at(e), H.at(e));
    const SafetensorsFile product =
        derivative(folder, {"hvp", program, "--inputs", in, "--outer-order", outer});
    EXPECT_EQ(names_of(product), (std::vector<std::string>{"hvp.0.x", "jac.0.x", "out.0"}));
    const Tensor hv = product.tensor("hvp.0.x");
    ASSERT_EQ(hv.shape(), (Shape{5, 6}));
    for (std::int64_t row = 0; row < 30; ++row) {
      double sum = 0;
      for (std::int64_t j = 0; j < 6; ++j) sum += H.at(6 * row + j) * v.at(j);
      EXPECT_NEAR(hv.at(row), sum, 1e-9);
    }
  }
}

TEST(DerivativeCommands, GradientsOfOneChosenNumber) {
  const TemporaryFolder folder;
  const std::string program = example("logistic_regression.loipe"), in = folder / "in.safetensors";
  write_safetensors(in, {{"in.X", filled({8, 3}, 0.1)},
                         {"in.w", filled({3}, 0.7)},
                         {"in.b", filled({}, 0.2)},
                         {"in.label", Tensor::of<std::int32_t>({8}, {0, 1, 1, 0, 1, 0, 0, 1})}});
  const SafetensorsFile gradient =
      derivative(folder, {"gradient", program, "--inputs", in, "--of", "1", "--wrt", "w,b"});
  EXPECT_EQ(names_of(gradient), (std::vector<std::string>{"grad.b", "grad.w", "out.0", "out.1"}));
  const SafetensorsFile jacobian = derivative(folder, {"jacobian", program, "--inputs", in, "--wrt", "w,b"});
  EXPECT_EQ(gradient.type("grad.w").shape, Shape{3});
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(gradient.tensor("grad.w").at(i), jacobian.tensor("jac.1.w").at(i), 1e-13);
  const Outcome refused = run({"gradient", program, "--dry-run"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("gives f32[8], f32[]"), std::string::npos) << refused.err;
}

/// Programs with a batch axis of their own run their examples one by one.
TEST(DerivativeCommands, BatchesAreTheirExamples) {
  constexpr std::int64_t kExamples = 4;
  const TemporaryFolder folder;
  for (const std::string golden_name : {"RoeFlux_1d", "RoeFlux_3d", "g", "Perceptron_scale1_rich"}) {
    SCOPED_TRACE(golden_name);
    const std::string name = golden_name.substr(0, golden_name.find("_scale"));
    const SafetensorsFile input = SafetensorsFile::read(golden(golden_name));
    const SafetensorsFile J =
        derivative(folder, {"jacobian", name, "--inputs", golden(golden_name), "--batch", "4"});
    const std::string in = folder / "in.safetensors";
    NamedTensors tensors;
    for (const std::string& tensor : input.names()) {
      if (!tensor.starts_with("in.")) continue;
      tensors.emplace_back(tensor, input.tensor(tensor));
      tensors.emplace_back("tangent" + tensor.substr(2), filled(input.type(tensor).shape, 0.4));
    }
    for (const std::string& tensor : J.names())
      if (tensor.starts_with("out."))
        tensors.emplace_back("cotangent" + tensor.substr(3), filled(J.type(tensor).shape, 0.9));
    write_safetensors(in, tensors, input.metadata());
    const SafetensorsFile seeds = SafetensorsFile::read(in);
    const SafetensorsFile jvp = derivative(folder, {"jvp", name, "--inputs", in, "--batch", "4"});
    const SafetensorsFile vjp = derivative(folder, {"vjp", name, "--inputs", in, "--batch", "4"});
    const std::string batched = "," + input.metadata().at("batched") + ",";
    double left = 0, right = 0;
    for (const std::string& tensor : jvp.names()) {
      if (!tensor.starts_with("jvp.")) continue;
      const std::string i = tensor.substr(4);
      const Tensor pushed = jvp.tensor(tensor), u = seeds.tensor("cotangent." + i);
      EXPECT_EQ(pushed.shape(), J.type("out." + i).shape);
      const std::int64_t rows = pushed.element_count() / kExamples;
      for (std::int64_t e = 0; e < pushed.element_count(); ++e) {
        double sum = 0, size = 1;
        for (const std::string& argument : seeds.names()) {
          if (!argument.starts_with("tangent.")) continue;
          const Tensor block = J.tensor("jac." + i + argument.substr(7)), v = seeds.tensor(argument);
          const bool is_shared = batched.find("," + argument.substr(8) + ",") == std::string::npos;
          const std::int64_t columns = v.element_count() / (is_shared ? 1 : kExamples);
          const std::int64_t first = is_shared ? 0 : e / rows * columns;
          for (std::int64_t c = 0; c < columns; ++c) {
            const double term = block.at(e * columns + c) * v.at(first + c);
            sum += term;
            size = std::max(size, std::abs(term));
          }
        }
        ASSERT_NEAR(pushed.at(e), sum, 1e-11 * size) << tensor;
        left += pushed.at(e) * u.at(e);
      }
    }
    for (const std::string& tensor : vjp.names()) {
      if (!tensor.starts_with("vjp.")) continue;
      const Tensor pulled = vjp.tensor(tensor), v = seeds.tensor("tangent." + tensor.substr(4));
      EXPECT_EQ(pulled.shape()[0], kExamples);
      for (std::int64_t e = 0; e < pulled.element_count(); ++e)
        right += pulled.at(e) * v.at(e % v.element_count());  // v of a shared argument is shared
    }
    EXPECT_NEAR(left, right, 1e-10 * (1 + std::abs(left)));
  }
}

TEST(DerivativeCommands, DescriptionsAndMistakes) {
  const std::string program = example("rosenbrock.loipe");
  const Json json =
      run_json({"hessian", program, "--dry-run", "--order", "forward", "--outer-order", "reverse"});
  EXPECT_EQ(json["derivative"], "hessian");
  EXPECT_EQ(json["order_name"], "forward");
  EXPECT_EQ(json["outer_order_name"], "reverse");
  EXPECT_EQ(json["results"][2]["name"], "hess.0.x.x");
  EXPECT_TRUE(json["multiplications"]["published"].is_null());
  EXPECT_EQ(run_json({"jvp", program, "--directions", "7", "--dry-run"})["results"][1]["shape"],
            (std::vector<std::int64_t>{7, 5}));
  const auto expect_error = [](const std::vector<std::string>& arguments, int code, const std::string& text) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  };
  expect_error({"jvp", program, "--format", "coo", "--dry-run"}, 2, "not those of jvp");
  expect_error({"vjp", program, "--outer-order", "forward", "--dry-run"}, 2, "--outer-order");
  expect_error({"jacobian", program, "--of", "4", "--dry-run"}, 2, "output 4");
  expect_error({"hessian", program, "--memory-limit", "100", "--dry-run"}, 4, "100");
  const TemporaryFolder folder;
  write_safetensors(folder / "in.safetensors", {{"in.x", filled({6}, 0.3)}});
  expect_error({"jvp", program, "--inputs", folder / "in.safetensors", "--out", folder / "out.safetensors"},
               2, "tangent.x");
}

/// The same numbers from generated C: x and a direction in, out and hvp out.
TEST(DerivativeCommands, GeneratedSourceComputesHessianVectorProducts) {
  if (std::system("gcc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "gcc is not installed";
  const TemporaryFolder folder;
  const std::string in = folder / "in.safetensors";
  const Tensor x = filled({}, 0.4), y = filled({}, 1.9), dx = filled({}, 0.8), dy = filled({}, 2.4);
  write_safetensors(in, {{"in.x", x}, {"in.y", y}, {"tangent.x", dx}, {"tangent.y", dy}});
  const SafetensorsFile file = [&] {
    run_ok({"hvp", "Simple", "--inputs", in, "--out", folder / "out.safetensors", "--emit", "c",
            folder / "source"});
    return SafetensorsFile::read(folder / "out.safetensors");
  }();
  std::string text = "#include <stdio.h>\n#include \"loipe_Simple.h\"\nint main(void) {\ndouble ", call,
              print;
  for (const auto& [name, tensor] : NamedTensors{{"x", x}, {"y", y}, {"dx", dx}, {"dy", dy}}) {
    text += name + " = " + std::to_string(tensor.at(0)) + ", ";
    call += "&" + name + ", ";
  }
  const std::vector<std::string> results{"out.0",   "out.1",   "jac.0.x", "jac.0.y", "jac.1.x",
                                         "jac.1.y", "hvp.0.x", "hvp.0.y", "hvp.1.x", "hvp.1.y"};
  text += "r[10];\n";
  for (std::size_t i = 0; i < results.size(); ++i) call += "&r[" + std::to_string(i) + "], ";
  text += "loipe_Simple(" + call +
          "0);\nfor (int i = 0; i < 10; ++i) printf(\"%.17g\\n\", r[i]);\nreturn 0;\n}\n";
  write_text(folder / "source/main.c", text);
  const std::string build = "cd '" + (folder / "source") +
                            "' && gcc -std=c11 -O1 -Wall -Wextra -Werror *.c -o run -lm && ./run > printed";
  ASSERT_EQ(std::system(build.c_str()), 0);
  std::istringstream printed(read_text(folder / "source/printed"));
  for (const std::string& result : results) {
    double value = NAN;
    printed >> value;
    EXPECT_NEAR(value, file.tensor(result).at(0), 1e-5) << result;  // the source got six digits
  }
}

/// Every field of the matrix says yes, or why not.
TEST(DerivativeCommands, TheMatrixOfOpsHasNoBlank) {
  const Json json = run_json({"ops"});
  for (const Json& op : json["ops"]) {
    SCOPED_TRACE(op["name"].dump());
    EXPECT_EQ(op["derivatives"].size(), 16u);
    for (const Json& field : op["derivatives"]) {
      EXPECT_EQ(field["orders"].size(), 4u);
      EXPECT_NE(field["supported"].get<bool>(), field["why_not"].is_string());
      if (op["name"] == "sin" || op["name"] == "einsum") {
        EXPECT_TRUE(field["supported"].get<bool>());
      }
      if (op["name"] == "gt") {
        EXPECT_EQ(field["why_not"], "its result is not floating: it is constant between jumps");
      }
    }
  }
}

}  // namespace
}  // namespace loipe::test
