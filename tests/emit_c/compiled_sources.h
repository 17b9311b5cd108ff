// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../backends/backend_testing.h"
#include "backends/c/emit_c.h"
#include "ir/interpreter.h"

namespace loipe {

/// Programs as one library of C: compilers start slowly, so many functions are compiled in one go.
class CompiledSources {
 public:
  explicit CompiledSources(std::string compiler) : compiler_(std::move(compiler)) {
    std::string name = (std::filesystem::temp_directory_path() / "loipe_emit_c_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~CompiledSources() {
    if (library_) ::dlclose(library_);
    std::filesystem::remove_all(folder_);
  }
  CompiledSources(const CompiledSources&) = delete;
  CompiledSources& operator=(const CompiledSources&) = delete;

  /// The number of the next source added.
  std::size_t size() const { return programs_.size(); }
  c::SourceNames names(const Program& program) const {
    c::SourceNames names{function(size()), {}, {}};
    for (std::size_t i = 0; i < program.arguments().size(); ++i)
      names.arguments.push_back("in." + program.argument_name(i));
    for (std::size_t i = 0; i < program.outputs().size(); ++i)
      names.outputs.push_back("out." + std::to_string(i));
    return names;
  }
  void add(const Program& program, const c::Source& source) {
    std::ofstream(folder_ / (function(size()) + ".h")) << source.header;
    std::ofstream(folder_ / (function(size()) + ".c")) << source.source;
    programs_.push_back(program);
  }
  void add(const Program& program) { add(program, c::emit_c(program, names(program), {})); }

  /// All of them as one translation unit without a warning, and all headers as C++. Optimising finds
  /// more to warn of, and takes ten times as long.
  void compile(const std::string& level = "-O0") {
    std::ofstream all(folder_ / "all.c"), headers(folder_ / "headers.cc");
    for (std::size_t k = 0; k < size(); ++k) {
      all << "#include \"" << function(k) << ".c\"\n" << call(k);
      headers << "#include \"" << function(k) << ".h\"\n";
    }
    all.close();
    headers.close();
    const std::string library = (folder_ / "all.so").string();
    const std::string warnings = " -Wall -Wextra -Wpedantic -Werror ";
    run(compiler_ + " -std=c11 " + level + " -ffp-contract=off -shared -fPIC" + warnings + "-o " + library +
        " " + (folder_ / "all.c").string() + " -lm");
    run(compiler_ + " -x c++ -std=c++20 -fsyntax-only" + warnings + (folder_ / "headers.cc").string());
    library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr);
  }

  /// Runs source k with guards around outputs and scratch memory, which are filled with garbage.
  std::vector<Tensor> run(std::size_t k, std::vector<Tensor> arguments) const {
    const Program& program = programs_[k];
    const auto* work_bytes = static_cast<const std::size_t*>(symbol("work_bytes_", k));
    const auto call = reinterpret_cast<void (*)(void**, void**, void*)>(symbol("call_", k));
    if (!work_bytes || !call) return {};
    const std::vector<Tensor> before = arguments;
    std::vector<void*> in, out;
    std::vector<GuardedBytes> guarded;
    for (Tensor& tensor : arguments) in.push_back(tensor.bytes().data());
    for (Value v : program.outputs()) guarded.emplace_back(program.type(v).byte_size());
    for (GuardedBytes& output : guarded) out.push_back(output.inside().data());
    GuardedBytes work(*work_bytes);
    call(in.data(), out.data(), work.inside().data());
    EXPECT_TRUE(work.is_intact()) << "the scratch memory was exceeded";
    EXPECT_TRUE(arguments == before) << "an argument was written";
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < guarded.size(); ++i) {
      EXPECT_TRUE(guarded[i].is_intact()) << "output " << i << " was written outside";
      outputs.emplace_back(program.type(program.outputs()[i]));
      std::ranges::copy(guarded[i].inside(), outputs.back().bytes().begin());
    }
    return outputs;
  }

  /// Against the reference interpreter; the errors are relative to the largest entry or 1.
  void expect_reference(std::size_t k, const std::vector<Tensor>& arguments, double f64_error,
                        double f32_error) const {
    expect_agreement(run(k, arguments), evaluate(programs_[k], arguments), f64_error, f32_error);
  }

 private:
  static std::string function(std::size_t k) { return "function_" + std::to_string(k); }

  std::string call(std::size_t k) const {
    const std::string number = std::to_string(k);
    std::string text = "#include <stddef.h>\nextern const size_t work_bytes_" + number +
                       ";\nconst size_t work_bytes_" + number + " = FUNCTION_" + number + "_WORK_BYTES;\n";
    text += "void call_" + number + "(void** in, void** out, void* work);\nvoid call_" + number +
            "(void** in, void** out, void* work) {\n  (void)in;\n  (void)out;\n  " + function(k) + "(";
    for (std::size_t i = 0; i < programs_[k].arguments().size(); ++i)
      text += "in[" + std::to_string(i) + "], ";
    for (std::size_t i = 0; i < programs_[k].outputs().size(); ++i)
      text += "out[" + std::to_string(i) + "], ";
    return text + "work);\n}\n";
  }

  static void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

  void* symbol(const std::string& stem, std::size_t k) const {
    void* address = library_ ? ::dlsym(library_, (stem + std::to_string(k)).c_str()) : nullptr;
    EXPECT_NE(address, nullptr) << stem << k;
    return address;
  }

  std::string compiler_;
  std::filesystem::path folder_;
  std::vector<Program> programs_;
  void* library_ = nullptr;
};

/// Tests with one compiler each.
class WithCompiler : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::system((std::string(GetParam()) + " --version > /dev/null 2>&1").c_str()) != 0)
      GTEST_SKIP() << GetParam() << " is not installed";
  }
};

inline std::string compiler_name(const ::testing::TestParamInfo<const char*>& info) {
  return std::string(info.param).starts_with("clang") ? "clang" : "gcc";
}

}  // namespace loipe
