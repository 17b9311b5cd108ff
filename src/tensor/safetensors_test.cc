// SPDX-License-Identifier: Apache-2.0
#include "tensor/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "base/file.h"
#include "base/rng.h"

namespace loipe {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// An empty folder for each test.
class SafetensorsTest : public testing::Test {
 protected:
  SafetensorsTest() {
    folder_ = fs::path(testing::TempDir()) / ("loipe_safetensors_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = folder_ / "t.safetensors";
  }
  ~SafetensorsTest() override { fs::remove_all(folder_); }

  fs::path folder_, path_;
};

Tensor random_tensor(Rng& rng) {
  constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::boolean, DType::i32, DType::i64};
  Shape shape;
  for (std::int64_t rank = rng.below(4); rank > 0; --rank) shape.push_back(rng.below(5));
  Tensor tensor(TensorType{kDTypes[rng.below(5)], shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, std::floor(rng.uniform(-3, 3)));
  return tensor;
}

TEST_F(SafetensorsTest, ReadsBackWhatItWrote) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    NamedTensors tensors;
    for (std::int64_t i = rng.below(8); i > 0; --i)
      tensors.emplace_back("in.løype " + std::to_string(i), random_tensor(rng));
    const Metadata metadata{{"task", "Encoder"}, {"batched", "x,y"}};
    write_safetensors(path_, tensors, metadata);
    const auto file = SafetensorsFile::read(path_);
    EXPECT_EQ(file.metadata(), metadata);
    EXPECT_EQ(file.names().size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
      EXPECT_EQ(file.type(name), tensor.type());
      EXPECT_EQ(file.tensor(name), tensor);
    }
  }
}

TEST_F(SafetensorsTest, WritesAlignedDataAndSortsNames) {
  write_safetensors(path_, {{"b", Tensor::of<bool>({3}, {true, false, true})},
                            {"d", Tensor::scalar(1.5)},
                            {"a", Tensor::scalar(2.5f)}});
  const std::string text = read_text_file(path_);
  EXPECT_EQ((text.size() - 3 - 4 - 8) % 8, 0u);
  EXPECT_THAT(text, HasSubstr(R"("d":{"data_offsets":[0,8],"dtype":"F64","shape":[]})"));
  EXPECT_THAT(text, HasSubstr(R"("b":{"data_offsets":[12,15],"dtype":"BOOL","shape":[3]})"));
  EXPECT_THAT(SafetensorsFile::read(path_).names(), ElementsAre("a", "b", "d"));
}

TEST_F(SafetensorsTest, TensorsOutliveAReplacedFile) {
  write_safetensors(path_, {{"x", Tensor::scalar(1.0)}});
  const auto file = SafetensorsFile::read(path_);
  write_safetensors(path_, {{"x", Tensor::scalar(2.0)}});
  EXPECT_EQ(file.tensor("x"), Tensor::scalar(1.0));
}

TEST_F(SafetensorsTest, SuggestsTheNearestTensor) {
  write_safetensors(path_, {{"in.query", Tensor::scalar(1.0)}});
  const auto file = SafetensorsFile::read(path_);
  EXPECT_TRUE(file.has("in.query"));
  EXPECT_FALSE(file.has("in.qury"));
  EXPECT_THAT([&] { return file.tensor("in.qury"); },
              ThrowsMessage<FileError>(AllOf(HasSubstr("t.safetensors\" holds no tensor \"in.qury\""),
                                             HasSubstr("did you mean 'in.query'?"))));
}

TEST_F(SafetensorsTest, RefusesNamesThatTheFormatCannotHold) {
  const Tensor x = Tensor::scalar(1.0);
  const auto write = [&](const NamedTensors& tensors) { write_safetensors(path_, tensors); };
  EXPECT_THAT([&] { write({{"x", x}, {"x", x}}); },
              ThrowsMessage<UserError>(HasSubstr("\"x\" is reserved or given twice")));
  EXPECT_THAT([&] { write({{"__metadata__", x}}); }, ThrowsMessage<UserError>(HasSubstr("reserved")));
  EXPECT_THAT([&] { write({{"\xff", x}}); }, ThrowsMessage<UserError>(HasSubstr("not valid UTF-8")));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(SafetensorsTest, AnUnwritableFileIsAFileErrorAndLeavesNothing) {
  EXPECT_THAT([&] { write_safetensors(folder_ / "no" / "t.safetensors", {{"x", Tensor::scalar(1.0)}}); },
              ThrowsMessage<FileError>(HasSubstr("cannot be written")));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SafetensorsTest, AMissingFileIsAFileError) {
  EXPECT_THAT([&] { SafetensorsFile::read(folder_ / "none.safetensors"); },
              ThrowsMessage<FileError>(HasSubstr("none.safetensors")));
}

}  // namespace
}  // namespace loipe
