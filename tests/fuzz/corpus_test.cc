// SPDX-License-Identifier: Apache-2.0
// Every file of the corpus through its fuzz target, in every build: seeds, and inputs
// that were faults once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/rng.h"
#include "fuzz/fuzz_target.h"

namespace loipe {

namespace testing {
/// How test names show the parameter.
void PrintTo(const FuzzTarget& target, std::ostream* stream) { *stream << target.name; }
}  // namespace testing

namespace {

namespace fs = std::filesystem;
using testing::FuzzTarget;

class Corpus : public ::testing::TestWithParam<FuzzTarget> {
 protected:
  static std::vector<std::string> files() {
    std::vector<std::string> paths;
    for (const auto& entry :
         fs::directory_iterator(fs::path(LOIPE_SOURCE_DIR) / "tests/fuzz/corpus" / GetParam().name))
      paths.push_back(entry.path().string());
    std::ranges::sort(paths);
    return paths;
  }
  static void run(std::string_view bytes) {
    GetParam().run({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
};

TEST_P(Corpus, IsSurvived) {
  ASSERT_GE(files().size(), 5u);
  for (const std::string& path : files()) EXPECT_NO_THROW(run(read_text_file(path))) << path;
}

/// What a fuzzer does first, without one: bytes changed, cut, doubled.
TEST_P(Corpus, IsSurvivedDamaged) {
  for (const std::string& path : files()) {
    const std::string whole = read_text_file(path);
    for (std::uint64_t seed = 1; seed <= 20 && !whole.empty(); ++seed) {
      Rng rng(seed);
      std::string bytes = whole;
      const auto place = [&] { return static_cast<std::size_t>(rng.below(std::ssize(bytes))); };
      for (std::int64_t n = rng.between(1, 4); n > 0; --n) bytes[place()] = static_cast<char>(rng.below(256));
      if (rng.chance(0.3)) bytes.resize(place());
      else if (rng.chance(0.3)) bytes.insert(place(), bytes.substr(place()));
      EXPECT_NO_THROW(run(bytes)) << path << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         ::testing::ValuesIn(testing::all_fuzz_targets().begin(),
                                             testing::all_fuzz_targets().end()),
                         [](const auto& test) { return std::string(test.param.name); });

/// What targets demand of an error.
TEST(FuzzTarget, ErrorsAreOneBoundedPrintableSentence) {
  using testing::is_refused;
  const auto throwing = [](const std::string& message) { return [=] { throw UserError(message); }; };
  EXPECT_FALSE(is_refused([] {}));
  EXPECT_TRUE(is_refused(throwing("line 1: expected x")));
  EXPECT_THROW(is_refused(throwing("two\nlines")), InternalError);
  EXPECT_THROW(is_refused(throwing("\x1b[2J")), InternalError);
  EXPECT_THROW(is_refused(throwing("")), InternalError);
  EXPECT_THROW(is_refused(throwing(std::string(5000, 'x'))), InternalError);
  EXPECT_THROW(is_refused([] { throw InternalError("broken"); }), InternalError);
  EXPECT_THROW(is_refused([] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace loipe
