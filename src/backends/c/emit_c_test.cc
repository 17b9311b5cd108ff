// SPDX-License-Identifier: Apache-2.0
#include "backends/c/emit_c.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/backend_testing.h"
#include "backends/scalar/scalarize.h"
#include "ir/builder.h"
#include "ir/interpreter.h"
#include "ir/parser.h"
#include "support/dense_jacobian.h"
#include "support/random_program.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test.
fs::path folder() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "_" + info->name();
  std::ranges::replace(name, '/', '_');
  const fs::path path = fs::temp_directory_path() / ("loipe_" + name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

bool has_compiler(const std::string& compiler) {
  return std::system((compiler + " --version > /dev/null 2>&1").c_str()) == 0;
}

c::SourceNames names_of(const Program& program) {
  c::SourceNames names{"generated", {}, {}};
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    names.arguments.push_back(program.argument_name(i));
  for (std::size_t i = 0; i < program.outputs().size(); ++i)
    names.outputs.push_back("out_" + std::to_string(i));
  return names;
}

/// Compiles the source to a shared library that calls the function on arrays of pointers.
class Compiled {
 public:
  Compiled(const fs::path& where, const c::Source& source, const scalar::Program& program,
           const std::string& compiler) {
    std::ofstream(where / "generated.h") << source.header;
    std::ofstream(where / "generated.c") << source.source;
    std::ofstream call(where / "call.c");
    call << "#include <stdlib.h>\n#include \"generated.h\"\n"
         << "int call(void** in, void** out) {\n  int is_intact = 1;\n"
         << "  double* work = malloc((GENERATED_WORK + 8) * sizeof(double));\n"
         << "  for (int k = 0; k < 8; ++k) work[GENERATED_WORK + k] = 4711;\n  generated(";
    for (std::size_t k = 0; k < program.arguments.size(); ++k) call << "in[" << k << "], ";
    for (std::size_t k = 0; k < program.outputs.size(); ++k) call << "out[" << k << "], ";
    call << "work);\n  for (int k = 0; k < 8; ++k) is_intact &= work[GENERATED_WORK + k] == 4711;\n"
         << "  free(work);\n  return is_intact;\n}\n";
    call.close();
    const std::string library = (where / "generated.so").string();
    const std::string command =
        compiler + " -std=c11 -O1 -Wall -Wextra -Werror -ffp-contract=off -shared -fPIC -o " + library + " " +
        (where / "generated.c").string() + " " + (where / "call.c").string() + " -lm";
    if (std::system(command.c_str()) != 0) return;
    handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) call_ = reinterpret_cast<Call*>(::dlsym(handle_, "call"));
  }
  ~Compiled() {
    if (handle_) ::dlclose(handle_);
  }
  explicit operator bool() const { return call_ != nullptr; }

  /// With guards around outputs and behind the work space.
  std::vector<Tensor> run(const Program& program, std::vector<Tensor> arguments) const {
    const std::vector<Tensor> before = arguments;
    std::vector<GuardedBytes> guarded;
    std::vector<void*> in, out;
    for (Tensor& tensor : arguments) in.push_back(tensor.bytes().data());
    for (Value v : program.outputs()) guarded.emplace_back(program.type(v).byte_size());
    for (GuardedBytes& output : guarded) out.push_back(output.inside().data());
    EXPECT_TRUE(call_(in.data(), out.data())) << "the work space was exceeded";
    EXPECT_TRUE(arguments == before) << "an argument was written";
    std::vector<Tensor> outputs;
    for (std::size_t k = 0; k < guarded.size(); ++k) {
      EXPECT_TRUE(guarded[k].is_intact()) << "output " << k << " was written outside";
      outputs.emplace_back(program.type(program.outputs()[k]));
      std::ranges::copy(guarded[k].inside(), outputs.back().bytes().begin());
    }
    return outputs;
  }

 private:
  using Call = int(void**, void**);
  void* handle_ = nullptr;
  Call* call_ = nullptr;
};

class EmitC : public ::testing::TestWithParam<const char*> {};

TEST_P(EmitC, EqualsTheInterpreterOnRandomPrograms) {
  if (!has_compiler(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  int compiled = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = testing::random_program(seed);
    if (!scalar::reasons_against(program).empty()) continue;
    const scalar::Program code = scalar::scalarize(program);
    const Compiled library(folder(), c::emit_c(code, names_of(program), {}), code, GetParam());
    ASSERT_TRUE(library);
    const std::vector<Tensor> arguments = testing::random_arguments(program, seed);
    const std::vector<Tensor> expected = evaluate(program, arguments),
                              results = library.run(program, arguments);
    for (std::size_t k = 0; k < expected.size(); ++k)
      ASSERT_LT(testing::relative_deviation(results[k], expected[k], 1.0), 1e-13) << "output " << k;
    ++compiled;
  }
  EXPECT_GT(compiled, 6);
}

TEST_P(EmitC, LongProgramsAreSeveralFunctions) {
  if (!has_compiler(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  Builder builder("chain");
  const Value x = builder.argument("t1", {DType::f64, {2}});  // named like a temporary
  Value y = x;
  for (int i = 0; i < 1500; ++i)
    y = i % 2 ? builder.emit("add", {y, x}) : builder.emit("mul", {y, builder.scalar(0.25, DType::f64)});
  const Program program = builder.finish({y});
  const scalar::Program code = scalar::scalarize(program);
  const c::Source source = c::emit_c(code, names_of(program), {});
  EXPECT_NE(source.source.find("generated_2("), std::string::npos);
  const Compiled library(folder(), source, code, GetParam());
  ASSERT_TRUE(library);
  const std::vector<Tensor> arguments{Tensor::of<double>({2}, {1.0, -2.0})};
  EXPECT_LT(testing::relative_deviation(library.run(program, arguments)[0], evaluate(program, arguments)[0]),
            1e-14);
}

INSTANTIATE_TEST_SUITE_P(Compilers, EmitC, ::testing::Values("gcc", "clang-19"), [](const auto& test) {
  return std::string(test.param).substr(0, 5) == "clang" ? "clang" : "gcc";
});

TEST(EmitCText, PatternsAreConstantsAndNamesIdentifiers) {
  const Program program = program_from_text(
      "program p(%\"double\": f32[2], %\"a-b\": f32[]) {\n  %1 = mul(%\"double\", %\"a-b\") : f32[2]\n  "
      "return %1\n}\n");
  const scalar::Program code = scalar::scalarize(program);
  const c::Source source =
      c::emit_c(code, {"my_function", {"double", "a-b"}, {"out_0"}}, {{"jac_0_x", {0, 1}, {0, 1}}});
  EXPECT_NE(source.header.find("void my_function(const float* restrict double_, const float* restrict a_b"),
            std::string::npos);
  EXPECT_NE(source.header.find("#define MY_FUNCTION_jac_0_x_NONZEROS 2"), std::string::npos);
  EXPECT_NE(source.source.find("const int my_function_jac_0_x_rows[2]"), std::string::npos);
}

}  // namespace
}  // namespace loipe
