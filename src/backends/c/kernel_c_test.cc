// SPDX-License-Identifier: Apache-2.0
#include "backends/c/kernel_c.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/cpu/steps/group_kernel.h"
#include "backends/kernel/kernel_interpreter.h"
#include "support/random_group.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;
using testing::RandomGroup;

constexpr int kKernels = 48;

RandomGroup group_of(int number) {
  const Shape spaces[] = {{17}, {5, 33}, {64, 8}, {3, 4, 5}, {20, 9, 40}, {1, 130}};
  const auto seed = static_cast<std::uint64_t>(number);
  const std::optional<cpu::Reduction> reduction =
      number % 4 > 1 ? std::optional(static_cast<cpu::Reduction>(number % 3)) : std::nullopt;
  return RandomGroup(seed, spaces[seed % std::size(spaces)], number % 2 ? DType::f32 : DType::f64,
                     number % 3 > 0, reduction);
}

/// Nothing for a reduction that is no kernel.
std::optional<kernel::Kernel> kernel_of(const RandomGroup& group, std::vector<std::byte*>& bases) {
  const std::optional<cpu::PlacedKernel> placed = cpu::kernel_of(group.group(), 32);
  if (!placed) return std::nullopt;
  for (const auto& place : placed->places) bases.push_back(group.bases()[place.buffer] + place.byte_offset);
  return placed->kernel;
}

/// All kernels in one library: compilers start slowly.
void expect_agreement(const std::string& compiler) {
  if (std::system((compiler + " --version > /dev/null 2>&1").c_str()) != 0) GTEST_SKIP() << "no " << compiler;
  const fs::path where = fs::temp_directory_path() / ("loipe_kernel_c_" + compiler);
  fs::remove_all(where);
  fs::create_directories(where);
  std::ofstream source(where / "kernels.c");
  for (int number = 0; number < kKernels; ++number) {
    std::vector<std::byte*> bases;
    if (const auto kernel = kernel_of(group_of(number), bases))
      source << c::emit_kernel(*kernel, "kernel_" + std::to_string(number));
  }
  source.close();
  const std::string library = (where / "kernels.so").string();
  const std::string command =
      compiler +
      " -std=c11 -O1 -Wall -Wextra -Werror -Wno-tautological-compare -ffp-contract=off -shared -fPIC -o " +
      library + " " + (where / "kernels.c").string() + " -lm";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  for (int number = 0; number < kKernels; ++number) {
    RandomGroup group = group_of(number);
    std::vector<std::byte*> bases;
    const std::optional<kernel::Kernel> kernel = kernel_of(group, bases);
    if (!kernel) continue;
    const auto function =
        reinterpret_cast<kernel::Function>(::dlsym(handle, ("kernel_" + std::to_string(number)).c_str()));
    ASSERT_NE(function, nullptr);
    group.clear_outputs();
    for (std::int64_t tile = kernel->tiles(); tile-- > 0;) function(bases.data(), tile, tile + 1);
    EXPECT_TRUE(group.guards_hold());
    const auto compiled = group.outputs();
    group.clear_outputs();
    kernel::interpret(*kernel, bases.data(), 0, kernel->tiles());
    EXPECT_EQ(group.difference(compiled, group.outputs(), number % 2 ? 1e-5 : 1e-13), "")
        << kernel::to_text(*kernel);
  }
  ::dlclose(handle);
  fs::remove_all(where);
}

TEST(KernelC, AgreesWithTheInterpreterThroughGcc) { expect_agreement("gcc"); }
TEST(KernelC, AgreesWithTheInterpreterThroughClang) { expect_agreement("clang-19"); }

}  // namespace
}  // namespace loipe
