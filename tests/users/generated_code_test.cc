// SPDX-License-Identifier: Apache-2.0
// Generated source and machine code: patterns as data, bounded units, a cache that others hit.
#include <gtest/gtest.h>
#include <loipe/loipe.h>
#include <sys/resource.h>

#include <cmath>

#include "cli/command_line.h"
#include "driver/task_jacobian.h"
#include "tensor/safetensors.h"

namespace loipe::test {
namespace {

std::string build(const TemporaryFolder& folder, const std::string& flags) {
  return "cd '" + (folder / "source") + "' && gcc -std=c11 " + flags;
}

TEST(Users, U28_ThePatternComesWithTheCode) {
  const TemporaryFolder folder;
  write_text(folder / "f.loipe",
             "program f(%x: f64[4]) {\n  %a = slice(%x) {start=[0], limit=[3], stride=[1]}\n"
             "  %b = slice(%x) {start=[1], limit=[4], stride=[1]}\n  %d = sub(%b, %a)\n"
             "  %r = mul(%d, %d)\n  return %r\n}\n");
  run_ok({"jacobian", folder / "f.loipe", "--emit", "c", folder / "source"});
  std::string header;
  for (const auto& entry : fs::directory_iterator(folder / "source"))
    if (entry.path().extension() == ".h") header = entry.path().filename();
  ASSERT_EQ(header, "loipe_f.h");
  write_text(
      folder / "source/main.c",
      "#include <stdio.h>\n#include \"loipe_f.h\"\nint main(void) {\n"
      "  printf(\"%d\", LOIPE_F_jac_0_x_NONZEROS);\n"
      "  for (int e = 0; e < LOIPE_F_jac_0_x_NONZEROS; ++e)\n"
      "    printf(\" %d,%d\", loipe_f_jac_0_x_rows[e], loipe_f_jac_0_x_columns[e]);\n  return 0;\n}\n");
  ASSERT_EQ(std::system((build(folder, "-Wall -Werror *.c -o run -lm") + " && ./run > printed").c_str()), 0);
  EXPECT_EQ(read_text(folder / "source/printed"), "6 0,0 0,1 1,1 1,2 2,2 2,3");
}

TEST(Users, U34_LargePatternsAreDataNotCode) {
  constexpr std::int64_t n = 2'500'001;
  const auto f = [](auto x) {
    const std::int64_t extent = x.shape()[0];
    return square(slice(x, {1}, {extent}) - slice(x, {0}, {extent - 1}));
  };
  const Jacobian J = jacobian(f, {{"x", {DType::f64, {n}}}}, {.format = BlockFormat::coo});
  EXPECT_EQ(J.block_pattern(0, 0).entry_count(), 5'000'000);
  // The program says it in one line for each operation; no entry has a name.
  const Jacobian small = jacobian(f, {{"x", {DType::f64, {5}}}}, {.format = BlockFormat::structured});
  const Jacobian large = jacobian(f, {{"x", {DType::f64, {n}}}}, {.format = BlockFormat::structured});
  EXPECT_LT(large.program_text().size(), small.program_text().size() + 200);
}

TEST(Users, U35_UnitsAreSmallAndNothingUnaskedIsGenerated) {
  const TemporaryFolder folder;
  run_ok({"jacobian", "BlackScholes_Jacobian", "--emit", "c", folder / "source"});
  ASSERT_EQ(std::system(build(folder, "-O2 -c *.c").c_str()), 0);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  EXPECT_LT(usage.ru_maxrss, 1'000'000) << "kilobytes";
  for (const auto& entry : fs::directory_iterator(folder / "source"))
    EXPECT_EQ(read_text(entry.path()).find("hess"), std::string::npos) << entry.path();
}

TEST(Users, U38_AnotherProgramHitsTheCache) {
  const TemporaryFolder folder;
  const char* before = std::getenv("LOIPE_CACHE_DIR");
  const std::string kept = before ? before : "";
  setenv("LOIPE_CACHE_DIR", (folder / "cache").c_str(), 1);
  run_ok({"jacobian", "RoeFlux_1d", "--inputs", golden("RoeFlux_1d"), "--batch", "4", "--threads", "1",
          "--out", folder / "out"});
  const auto files = [&] {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "cache"))
      count += entry.is_regular_file();
    return count;
  };
  const std::size_t made = fs::exists(folder / "cache") ? files() : 0;
  const SafetensorsFile file = SafetensorsFile::read(golden("RoeFlux_1d"));
  const Subject subject({"RoeFlux_1d", {}, 4});
  TaskJacobianOptions options;
  options.dtype = DType::f64;
  options.threads = 1;
  options.batch = plan_batch(subject, {});
  const TaskJacobian jacobian(subject, options);  // this process is another binary
  if (fs::exists(folder / "cache")) {
    EXPECT_GT(made, 0U);
    EXPECT_EQ(files(), made);
  }
  if (before) setenv("LOIPE_CACHE_DIR", kept.c_str(), 1);
  else unsetenv("LOIPE_CACHE_DIR");
}

TEST(Users, U16_HelpNamesTheForms) {
  const std::string help = run_ok({"jacobian", "--help"}).out;
  for (const char* format : {"dense", "coo", "csr", "structured"})
    EXPECT_NE(help.find(format), std::string::npos) << format;
}

}  // namespace
}  // namespace loipe::test
