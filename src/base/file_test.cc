// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace loipe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// An empty folder for each test.
class FileTest : public testing::Test {
 protected:
  FileTest() {
    folder_ = fs::path(testing::TempDir()) / ("loipe_file_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_;
};

TEST_F(FileTest, WritesAndReads) {
  write_file(folder_ / "a", "some\ntext");
  EXPECT_EQ(read_text_file(folder_ / "a"), "some\ntext");
  write_file(folder_ / "a", "");
  EXPECT_EQ(read_text_file(folder_ / "a"), "");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(FileTest, AnOpenFileKeepsItsContentWhenReplaced) {
  write_file(folder_ / "a", "old");
  const InputFile file(folder_ / "a");
  write_file(folder_ / "a", "new and longer");
  std::array<std::byte, 2> bytes{};
  file.read(1, bytes);
  EXPECT_EQ(bytes[0], std::byte{'l'});
  EXPECT_EQ(file.size(), 3u);
}

TEST_F(FileTest, ReadingPastTheEndIsAnError) {
  write_file(folder_ / "a", "abc");
  const InputFile file(folder_ / "a");
  std::array<std::byte, 4> bytes{};
  EXPECT_THAT([&] { file.read(0, bytes); }, ThrowsMessage<FileError>(HasSubstr("ends too early")));
}

TEST_F(FileTest, NamesTheFileThatCannotBeRead) {
  EXPECT_THAT([&] { read_text_file(folder_ / "missing"); },
              ThrowsMessage<FileError>(testing::AllOf(HasSubstr("missing\""), HasSubstr("No such file"))));
  EXPECT_THAT([&] { read_text_file(folder_); }, ThrowsMessage<FileError>(HasSubstr("not a regular file")));
  EXPECT_THAT([] { read_text_file("/dev/null"); }, ThrowsMessage<FileError>(HasSubstr("not a regular file")));
}

TEST_F(FileTest, LeavesNothingWhenItCannotWrite) {
  EXPECT_THAT([&] { write_file(folder_ / "no" / "such", "x"); },
              ThrowsMessage<FileError>(HasSubstr("cannot be written")));
  EXPECT_THAT([&] { write_file(folder_, "x"); }, ThrowsMessage<FileError>(HasSubstr("cannot be written")));
  EXPECT_EQ(file_count(), 0u);
}

TEST_F(FileTest, ReportsAFullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_THAT([] { write_file("/dev/full", "x"); }, ThrowsMessage<FileError>(HasSubstr("No space left")));
}

TEST_F(FileTest, WritesToADeviceWithoutReplacingIt) {
  write_file("/dev/null", "x");
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
}

TEST_F(FileTest, ALinkStaysALink) {
  write_file(folder_ / "target", "old");
  fs::create_symlink("target", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_text_file(folder_ / "target"), "new");
}

}  // namespace
}  // namespace loipe
