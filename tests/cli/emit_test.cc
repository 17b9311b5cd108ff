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
  return text + "void* work = malloc(LOIPE_ROEFLUX_3D_WORK_BYTES + 1);\n" + call + "work);\n" + print +
         "free(work);\nreturn 0;\n}\n";
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

/// A sort, a solve and integers: nothing of it has straight-line code.
TEST(EmitC, ProgramsWithoutScalarFormAreWritten) {
  const TemporaryFolder folder;
  write_text(folder / "rows.loipe",
             "program rows(%x: f64[2,3], %class: i64[2]) {\n"
             "  %1 = sort(%x) {descending=0} : f64[2,3]\n"
             "  %2 = convert_element_type(%class) {dtype=f64} : f64[2]\n"
             "  %3 = dot_general(%2, %1) {lhs_contract=[0], rhs_contract=[0]} : f64[3]\n"
             "  return %3\n}\n");
  run_ok({"jacobian", folder / "rows.loipe", "--emit", "c", folder / "source"});
  const std::string header = read_text(folder / "source/loipe_rows.h");
  EXPECT_NE(header.find("void loipe_rows(const double* restrict in_x, const int64_t* restrict in_class,"),
            std::string::npos)
      << header;
}

TEST(EmitC, NothingIsWrittenWhereOneFileCannotBe) {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const auto emit = [&](const std::string& to) {
    return run({"jacobian", "Simple", "--emit", "c", folder / to});
  };
  const Outcome no_folder = emit("file");
  EXPECT_EQ(no_folder.exit_code, 5);
  EXPECT_NE(no_folder.err.find("cannot make the folder"), std::string::npos) << no_folder.err;
  fs::create_directories(folder / "source/loipe_Simple.c");
  const Outcome no_file = emit("source");
  EXPECT_EQ(no_file.exit_code, 5);
  EXPECT_NE(no_file.err.find("it is a directory"), std::string::npos) << no_file.err;
  EXPECT_FALSE(fs::exists(folder / "source/loipe_Simple.h"));
}

}  // namespace
}  // namespace loipe::test
