// SPDX-License-Identifier: Apache-2.0
// `jacobian --emit c`: the source compiles with the system's C compiler and computes
// what the command computes.
#include <cmath>
#include <sstream>

#include "base/text.h"
#include "cli/command_line.h"
#include "tensor/safetensors.h"

namespace loipe::test {
namespace {

constexpr const char* kArguments[] = {"ul0", "ul", "ul4", "ur0", "ur", "ur4"};
constexpr int kSizes[] = {1, 3, 1, 1, 3, 1};
constexpr int kOutputSizes[] = {1, 3, 1};

double entry(int argument, int element) {
  return 0.1 * (argument + 1) + 0.05 * element + (argument > 2 ? 0.02 : 0);
}

void write_inputs(const std::string& path) {
  NamedTensors tensors;
  for (int k = 0; k < 6; ++k) {
    Tensor tensor(TensorType{DType::f64, {kSizes[k]}});
    for (int e = 0; e < kSizes[k]; ++e) tensor.set(e, entry(k, e));
    tensors.emplace_back(std::string("in.") + kArguments[k], tensor);
  }
  write_safetensors(path, tensors);
}

/// A program that calls the generated function and prints every result.
std::string caller() {
  std::string text =
      "#include <stdio.h>\n#include <stdlib.h>\n#include \"loipe_RoeFlux_3d.h\"\nint main(void) {\n";
  std::string call = "loipe_RoeFlux_3d(", print;
  for (int k = 0; k < 6; ++k) {
    text += std::string("double ") + kArguments[k] + "[] = {";
    for (int e = 0; e < kSizes[k]; ++e) text += format_double(entry(k, e)) + ",";
    text += "};\n";
    call += std::string(kArguments[k]) + ", ";
  }
  const auto result = [&](const std::string& name, int size) {
    text += "double " + name + "[" + std::to_string(size) + "];\n";
    call += name + ", ";
    print +=
        "for (int i = 0; i < " + std::to_string(size) + "; ++i) printf(\"%.17g\\n\", " + name + "[i]);\n";
  };
  for (int i = 0; i < 3; ++i) result("out_" + std::to_string(i), kOutputSizes[i]);
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 6; ++k)
      result("jac_" + std::to_string(i) + "_" + kArguments[k], kOutputSizes[i] * kSizes[k]);
  return text + "void* work = malloc(LOIPE_ROEFLUX_3D_WORK_BYTES + 1);\n" + call + "work);\n" +
         print + "free(work);\nreturn 0;\n}\n";
}

TEST(EmitC, TheSourceComputesTheJacobian) {
  if (std::system("gcc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "gcc is not installed";
  const TemporaryFolder folder;
  write_inputs(folder / "in.safetensors");
  run_ok({"jacobian", "RoeFlux_3d", "--inputs", folder / "in.safetensors", "--out",
          folder / "out.safetensors", "--dtype", "f64", "--order", "alphagrad", "--emit", "c",
          folder / "source"});
  write_text(folder / "source/main.c", caller());
  const std::string build = "cd '" + (folder / "source") +
                            "' && gcc -std=c11 -O1 -Wall -Wextra -Werror *.c -o run -lm && ./run > printed";
  ASSERT_EQ(std::system(build.c_str()), 0);
  std::istringstream printed(read_text(folder / "source/printed"));
  const SafetensorsFile file = SafetensorsFile::read(folder / "out.safetensors");
  const auto compare = [&](const std::string& name) {
    const Tensor expected = file.tensor(name);
    for (std::int64_t e = 0; e < expected.element_count(); ++e) {
      double value = NAN;
      printed >> value;
      EXPECT_NEAR(value, expected.at(e), 1e-11 * (1 + std::abs(expected.at(e)))) << name << "[" << e << "]";
    }
  };
  for (int i = 0; i < 3; ++i) compare("out." + std::to_string(i));
  for (int i = 0; i < 3; ++i)
    for (const char* argument : kArguments) compare("jac." + std::to_string(i) + "." + argument);
}

TEST(EmitC, AloneItNeedsNoInputs) {
  const TemporaryFolder folder;
  run_ok({"jacobian", "HumanHeartDipole", "--emit", "c", folder / "source"});
  EXPECT_TRUE(fs::exists(folder / "source/loipe_HumanHeartDipole.h"));
  EXPECT_NE(read_text(folder / "source/loipe_HumanHeartDipole.h").find("_NONZEROS"), std::string::npos);
}

}  // namespace
}  // namespace loipe::test
