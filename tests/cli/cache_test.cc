// SPDX-License-Identifier: Apache-2.0
// Compiled code on disk, as processes see it.
#include "cli/command_line.h"

namespace loipe::test {
namespace {

/// The folder of the cache of all processes that are started, for the time of a test.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& path) {
    if (const char* text = std::getenv("LOIPE_CACHE_DIR")) before_ = text;
    setenv("LOIPE_CACHE_DIR", path.c_str(), 1);
  }
  ~CacheFolder() {
    if (before_.empty()) unsetenv("LOIPE_CACHE_DIR");
    else setenv("LOIPE_CACHE_DIR", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

std::vector<std::string> flux(const std::string& out) {
  return {"jacobian", "RoeFlux_1d", "--inputs", golden("RoeFlux_1d"), "--batch", "4", "--out", out};
}

std::string cached_result(const TemporaryFolder& folder) {
  run_ok(flux(folder / "out"));
  return read_text(folder / "out");
}

TEST(CodeCache, TwoProcessesAtOnceAndOneAfterThem) {
  const TemporaryFolder folder;
  const CacheFolder cache(folder / "cache");
  const Process first(flux(folder / "a")), second(flux(folder / "b"));
  const Outcome one = first.wait(), two = second.wait();
  ASSERT_EQ(one.exit_code, 0) << one.err;
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const std::string expected = read_text(folder / "a");
  EXPECT_EQ(read_text(folder / "b"), expected);
  EXPECT_EQ(cached_result(folder), expected);
  const Json info = run_json({"info"})["cache"];
  EXPECT_EQ(info["folder"], folder / "cache");
  EXPECT_EQ(info["limit"], 256 << 20);
  if (run_json({"info"})["optional"] != Json::array()) {
    EXPECT_GT(info["bytes"], 1000);
  }
  EXPECT_NE(run_ok({"info"}).out.find("code cache " + (folder / "cache")), std::string::npos);
}

TEST(CodeCache, AFolderThatCannotBeWrittenIsNoMistake) {
  const TemporaryFolder folder;
  write_text(folder / "file", "no folder");
  const CacheFolder cache(folder / "file" + "/below");
  const std::string result = cached_result(folder);
  setenv("LOIPE_CACHE_BYTES", "0", 1);
  EXPECT_EQ(cached_result(folder), result);
  EXPECT_EQ(run_json({"info"})["cache"]["folder"], "");
  unsetenv("LOIPE_CACHE_BYTES");
}

}  // namespace
}  // namespace loipe::test
