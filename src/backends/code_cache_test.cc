// SPDX-License-Identifier: Apache-2.0
#include "backends/code_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "base/file.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;

class CodeCacheTest : public ::testing::Test {
 protected:
  CodeCacheTest() : folder_(fs::path(::testing::TempDir()) / ("code_cache_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~CodeCacheTest() override { fs::remove_all(folder_); }

  /// As if it had been used so long ago.
  void age(const std::string& key, int minutes) const {
    fs::last_write_time(folder_ / (key + ".code"),
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  }

  fs::path folder_;
};

TEST_F(CodeCacheTest, GivesBackWhatWasStored) {
  const CodeCache cache(folder_, 1 << 20);
  EXPECT_EQ(cache.load("a"), std::nullopt);
  const std::string code("\0code\xff", 6);
  cache.store("a", code);
  cache.store("empty", "");
  EXPECT_EQ(cache.load("a"), code);
  EXPECT_EQ(cache.load("empty"), "");
  EXPECT_EQ(cache.load("b"), std::nullopt);
  EXPECT_GT(cache.size(), code.size());
}

TEST_F(CodeCacheTest, DamagedFilesAreIgnoredAndReplaced) {
  const CodeCache cache(folder_, 1 << 20);
  const std::string code(1000, 'x');
  for (const auto& damage :
       {+[](std::string& text) { text.resize(text.size() / 2); },
        +[](std::string& text) { text.back() ^= 1; }, +[](std::string& text) { text += "y"; },
        +[](std::string& text) { text.clear(); }, +[](std::string& text) { text[3] = 'X'; }}) {
    cache.store("a", code);
    std::string text = read_text_file(folder_ / "a.code");
    damage(text);
    write_file(folder_ / "a.code", text);
    EXPECT_EQ(cache.load("a"), std::nullopt);
    cache.store("a", code);
    EXPECT_EQ(cache.load("a"), code);
  }
}

TEST_F(CodeCacheTest, TheLongestUnusedGoFirst) {
  const CodeCache cache(folder_, 3500);
  const std::string code(1000, 'x');
  for (const char* key : {"a", "b", "c"}) cache.store(key, code);
  age("a", 30);
  age("b", 20);
  age("c", 10);
  EXPECT_TRUE(cache.load("a"));  // used again: now b is the oldest
  cache.store("d", code);
  EXPECT_TRUE(cache.load("a"));
  EXPECT_FALSE(cache.load("b"));
  EXPECT_TRUE(cache.load("c"));
  EXPECT_TRUE(cache.load("d"));
  EXPECT_LE(cache.size(), 3500u);
  cache.store("larger than the limit", std::string(4000, 'x'));
  EXPECT_FALSE(cache.load("larger than the limit"));
  EXPECT_TRUE(cache.load("d"));
}

TEST_F(CodeCacheTest, WithoutAFolderThereIsNoCache) {
  const CodeCache off(folder_, 0);
  off.store("a", "code");
  EXPECT_EQ(off.load("a"), std::nullopt);
  EXPECT_FALSE(fs::exists(folder_));
  write_file(folder_, "a file");
  const CodeCache blocked(folder_ / "below", 1 << 20);
  blocked.store("a", "code");
  EXPECT_EQ(blocked.load("a"), std::nullopt);
  EXPECT_EQ(blocked.size(), 0u);
  fs::remove(folder_);
  const CodeCache open(folder_, 1 << 20);
  open.store("a", "code");
  fs::permissions(folder_, fs::perms::all);  // anybody could have put code there
  EXPECT_EQ(open.load("a"), std::nullopt);
}

TEST_F(CodeCacheTest, ReadersAndWritersAtTheSameTime) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const CodeCache cache(folder_, 20'000);
      for (int i = 0; i < 200; ++i) {
        const std::string key = std::to_string(i % 7);
        const std::string code(4000, static_cast<char>('a' + i % 7));
        if (t % 2) cache.store(key, code);
        else if (const auto found = cache.load(key); found && *found != code) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CodeCacheTest, TheEnvironmentSaysWhere) {
  const auto keep = [](const char* name) {
    const char* text = std::getenv(name);
    return std::pair<const char*, std::optional<std::string>>(
        name, text ? std::optional<std::string>(text) : std::nullopt);
  };
  const auto kept = {keep("LOIPE_CACHE_DIR"), keep("XDG_CACHE_HOME"), keep("HOME"),
                     keep("LOIPE_CACHE_BYTES")};
  for (const auto& [name, text] : kept) ::unsetenv(name);
  EXPECT_FALSE(CodeCache().is_enabled());
  ::setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(CodeCache().folder(), "/home/ada/.cache/loipe");
  EXPECT_EQ(CodeCache().limit(), 256u << 20);
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(CodeCache().folder(), "/home/ada/.cache/loipe");
  ::setenv("XDG_CACHE_HOME", "/var/cache/ada", 1);
  EXPECT_EQ(CodeCache().folder(), "/var/cache/ada/loipe");
  ::setenv("LOIPE_CACHE_DIR", "mine", 1);
  EXPECT_EQ(CodeCache().folder(), "mine");
  ::setenv("LOIPE_CACHE_BYTES", "1000", 1);
  EXPECT_EQ(CodeCache().limit(), 1000u);
  ::setenv("LOIPE_CACHE_BYTES", "0", 1);
  EXPECT_FALSE(CodeCache().is_enabled());
  for (const char* garbage : {"a lot", "-1", "12k", "99999999999999999999"}) {
    ::setenv("LOIPE_CACHE_BYTES", garbage, 1);
    EXPECT_THROW(CodeCache(), UserError) << garbage;
  }
  for (const auto& [name, text] : kept) {
    if (text) ::setenv(name, text->c_str(), 1);
    else ::unsetenv(name);
  }
}

}  // namespace
}  // namespace loipe
