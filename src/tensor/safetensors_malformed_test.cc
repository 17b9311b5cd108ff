// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/rng.h"
#include "tensor/safetensors.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string length_field(std::uint64_t length) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text;
}

std::string with_header(const std::string& header, std::size_t data_size) {
  return length_field(header.size()) + header + std::string(data_size, '\2');
}

class MalformedSafetensors : public testing::Test {
 protected:
  MalformedSafetensors()
      : path_(fs::path(testing::TempDir()) /
              ("loipe_malformed_" + std::to_string(::getpid()) + ".safetensors")) {}
  ~MalformedSafetensors() override { fs::remove(path_); }

  SafetensorsFile read(const std::string& bytes) const {
    write_file(path_, bytes);
    return SafetensorsFile::read(path_);
  }
  void expect_error(const std::string& bytes, const std::string& part) const {
    EXPECT_THAT(
        [&] { read(bytes); },
        ThrowsMessage<FileError>(AllOf(
            HasSubstr(path_.filename().string() + "\" is not a valid safetensors file"), HasSubstr(part))))
        << part;
  }

  fs::path path_;
};

TEST_F(MalformedSafetensors, Lengths) {
  expect_error("", "shorter than 8 bytes");
  expect_error("1234567", "shorter than 8 bytes");
  expect_error(length_field(0), "does not begin with '{'");
  expect_error(length_field(3) + "{}", "header of 3 bytes does not fit into 10 bytes");
  expect_error(length_field(~std::uint64_t{0}) + "{}", "does not fit");
  expect_error(length_field(std::uint64_t{1} << 63) + "{}", "does not fit");
}

TEST_F(MalformedSafetensors, HeaderLongerThanTheFormatAllows) {
  write_file(path_, length_field(kLargestSafetensorsHeader + 1) + "{}");
  fs::resize_file(path_, kLargestSafetensorsHeader + 100);  // a hole, which takes no disk
  EXPECT_THAT([&] { SafetensorsFile::read(path_); },
              ThrowsMessage<FileError>(HasSubstr("longer than the format allows")));
}

TEST_F(MalformedSafetensors, Json) {
  expect_error(with_header("[1]", 0), "does not begin with '{'");
  expect_error(with_header("{", 0), "malformed JSON at byte 2");
  expect_error(with_header("{} x", 0), "malformed JSON");
  expect_error(with_header("{\"\xff\": 1}", 0), "malformed JSON");
  expect_error(with_header(R"({"x": 1e999})", 0), "a number out of range");
  expect_error(with_header("{\"x\":" + std::string(1'000'000, '['), 0), "nested too deeply");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"x\":";
  expect_error(with_header(objects, 0), "nested too deeply");
}

TEST_F(MalformedSafetensors, RepeatedNames) {
  const std::string entry = R"("x":{"dtype":"F64","shape":[],"data_offsets":[0,8]})";
  expect_error(with_header("{" + entry + "," + entry + "}", 8), "two tensors named \"x\"");
  expect_error(with_header(R"({"x":{"dtype":"F32","dtype":"F64","shape":[],"data_offsets":[0,8]}})", 8),
               "repeats the key \"dtype\"");
}

TEST_F(MalformedSafetensors, Metadata) {
  expect_error(with_header(R"({"__metadata__": []})", 0), "'__metadata__' is not a JSON object");
  expect_error(with_header(R"({"__metadata__": {"layers": 3}})", 0), "metadata \"layers\" is not a text");
}

struct BadEntry {
  const char* entry;
  const char* part;
};

TEST_F(MalformedSafetensors, Entries) {
  constexpr BadEntry kCases[] = {
      {"3", "is not described by a JSON object"},
      {R"({"shape":[],"data_offsets":[0,8]})", "has no dtype"},
      {R"({"dtype":7,"shape":[],"data_offsets":[0,8]})", "has no dtype"},
      {R"({"dtype":"F64","data_offsets":[0,8]})", "has no shape"},
      {R"({"dtype":"F64","shape":3,"data_offsets":[0,8]})", "has no shape"},
      {R"({"dtype":"F64","shape":[-1],"data_offsets":[0,8]})", "extent that is not an integer"},
      {R"({"dtype":"F64","shape":[1.0],"data_offsets":[0,8]})", "extent that is not an integer"},
      {R"({"dtype":"F64","shape":[18446744073709551615],"data_offsets":[0,8]})",
       "extent that is not an integer"},
      {R"({"dtype":"F64","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,8]})",
       "can be addressed"},
      {R"({"dtype":"F64","shape":[9223372036854775807],"data_offsets":[0,8]})", "can be addressed"},
      {R"({"dtype":"F64","shape":[2],"data_offsets":[0,8]})", "F64[2] and needs 16 bytes, but has 8"},
      {R"({"dtype":"F64","shape":[]})", "has no valid data_offsets"},
      {R"({"dtype":"F64","shape":[],"data_offsets":[0]})", "has no valid data_offsets"},
      {R"({"dtype":"F64","shape":[],"data_offsets":[-8,0]})", "has no valid data_offsets"},
      {R"({"dtype":"F64","shape":[],"data_offsets":[0,8.0]})", "has no valid data_offsets"},
      {R"({"dtype":"F64","shape":[],"data_offsets":[8,0]})", "lies at bytes 8 to 0 of 8"},
      {R"({"dtype":"F64","shape":[],"data_offsets":[0,16]})", "lies at bytes 0 to 16 of 8"},
      {R"({"dtype":"F64","shape":[],"data_offsets":[18446744073709551608,18446744073709551615]})",
       "lies at bytes"},
      {R"({"dtype":"BF16","shape":[3],"data_offsets":[0,8]})", "BF16[3] and needs 6 bytes, but has 8"},
      {R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", "4 bytes that belong to no tensor"},
      {R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]})", "follows a gap"},
  };
  for (const auto& [entry, part] : kCases) {
    const std::string bytes = with_header(std::string(R"({"the one":)") + entry + "}", 8);
    expect_error(bytes, part);
    if (!std::string_view(part).starts_with("4 bytes")) expect_error(bytes, "tensor \"the one\"");
  }
}

TEST_F(MalformedSafetensors, OverlappingTensors) {
  expect_error(with_header(R"({"x":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                           R"("y":{"dtype":"F64","shape":[],"data_offsets":[4,12]}})",
                           12),
               "tensor \"y\" overlaps another tensor");
}

TEST_F(MalformedSafetensors, BoolsOtherThanZeroAndOne) {
  const auto file = read(with_header(R"({"mask":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2));
  EXPECT_THAT([&] { return file.tensor("mask"); },
              ThrowsMessage<FileError>(AllOf(HasSubstr("\"mask\""), HasSubstr("other than 0 and 1"))));
}

TEST_F(MalformedSafetensors, FileCutAfterItWasOpened) {
  const auto file = read(with_header(R"({"x":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})", 16));
  fs::resize_file(path_, fs::file_size(path_) - 1);
  EXPECT_THAT([&] { return file.tensor("x"); }, ThrowsMessage<FileError>(HasSubstr("ends too early")));
}

TEST_F(MalformedSafetensors, OtherDTypesOnlyMatterWhenAskedFor) {
  const auto file = read(with_header(R"({"h":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                                     R"("x":{"dtype":"F32","shape":[],"data_offsets":[6,10],"more":[{}]}})",
                                     10));
  EXPECT_TRUE(file.has("h"));
  EXPECT_EQ(file.tensor("x").type(), (TensorType{DType::f32, {}}));  // not aligned in the file
  EXPECT_THAT([&] { return file.tensor("h"); },
              ThrowsMessage<Unsupported>(AllOf(HasSubstr("\"h\""), HasSubstr("dtype BF16: expected F64"))));
}

TEST_F(MalformedSafetensors, RandomDamageNeverEscapes) {
  write_safetensors(path_, {{"x", Tensor::of<double>({2}, {1, 2})}, {"m", Tensor::of<bool>({1}, {true})}},
                    {{"k", "v"}});
  const std::string valid = read_text_file(path_);
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    std::string bytes = valid;
    for (std::int64_t n = rng.between(1, 4); n > 0; --n)
      bytes[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(bytes.size())))] =
          static_cast<char>(rng.below(256));
    if (rng.chance(0.3))
      bytes.resize(static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(bytes.size()))));
    try {
      const auto file = read(bytes);
      for (const std::string& name : file.names()) file.tensor(name);
    } catch (const FileError&) {
    } catch (const Unsupported&) {
    }
  }
}

}  // namespace
}  // namespace loipe
