// SPDX-License-Identifier: Apache-2.0
// `loipe attention` through the binary: results, description, and every mistake in a file.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "attention/reference/reference_attention.h"
#include "base/rng.h"
#include "cli/command_line.h"
#include "tensor/safetensors.h"

namespace loipe::test {
namespace {

using testing::HasSubstr;

Tensor random_tensor(Shape shape, Rng& rng) {
  Tensor tensor({DType::f64, std::move(shape)});
  for (double& element : tensor.elements<double>()) element = rng.normal();
  return tensor;
}

class AttentionCommand : public testing::Test {
 protected:
  AttentionCommand() {
    Rng rng(1);
    tensors_["Q"] = random_tensor({4, 9, 8}, rng);
    tensors_["K"] = random_tensor({2, 11, 8}, rng);
    tensors_["V"] = random_tensor({2, 11, 5}, rng);
    tensors_["G"] = random_tensor({4, 9, 5}, rng);
    tensors_["key_mask"] = Tensor::of<std::int64_t>({11}, {1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1});
  }
  std::string write() {
    NamedTensors named(tensors_.begin(), tensors_.end());
    write_safetensors(folder_ / "in.safetensors", named, metadata_);
    return folder_ / "in.safetensors";
  }
  std::vector<std::string> command(std::vector<std::string> options = {}) {
    std::vector<std::string> all{"attention", "--inputs", write(), "--out", folder_ / "out.safetensors"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  Outcome run_with(std::vector<std::string> options = {}) { return run(command(std::move(options))); }
  void expect_refusal(int exit_code, const std::string& message, std::vector<std::string> options = {}) {
    const Outcome outcome = run_with(std::move(options));
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(folder_ / "out.safetensors"));
  }

  std::map<std::string, Tensor> tensors_;
  Metadata metadata_;
  TemporaryFolder folder_;
};

attention::Rows<double> rows(Tensor& tensor) {
  const Shape& shape = tensor.shape();
  return attention::contiguous(tensor.elements<double>().data(), shape[1], shape.size() > 2 ? shape[2] : 1);
}

}  // namespace

TEST_F(AttentionCommand, EqualsTheReference) {
  metadata_ = {{"causal", "1"}, {"scale", "0.3"}, {"heads", "4"}, {"kv_heads", "2"}, {"note", "anything"}};
  ASSERT_EQ(run_with({"--window", "6"}).exit_code, 0);
  std::vector<std::uint8_t> mask;
  for (const std::int64_t allowed : tensors_["key_mask"].elements<std::int64_t>())
    mask.push_back(static_cast<std::uint8_t>(allowed));
  const attention::Problem<double> problem{{4, 2, 9, 11, 8, 5},    0.3,
                                           {true, 6, mask.data()}, rows(tensors_["Q"]),
                                           rows(tensors_["K"]),    rows(tensors_["V"])};
  std::map<std::string, Tensor> expected{{"O", Tensor({DType::f64, {4, 9, 5}})},
                                         {"lse", Tensor({DType::f64, {4, 9}})},
                                         {"dQ", Tensor({DType::f64, {4, 9, 8}})},
                                         {"dK", Tensor({DType::f64, {2, 11, 8}})},
                                         {"dV", Tensor({DType::f64, {2, 11, 5}})}};
  attention::reference::forward<double>(problem, {rows(expected["O"]), rows(expected["lse"])});
  attention::reference::vjp<double>(problem, {rows(tensors_["G"])},
                                    {rows(expected["dQ"]), rows(expected["dK"]), rows(expected["dV"])});
  const SafetensorsFile file = SafetensorsFile::read(folder_ / "out.safetensors");
  EXPECT_EQ(file.names().size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    const Tensor got = file.tensor(name);
    ASSERT_EQ(got.type(), tensor.type()) << name;
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      EXPECT_NEAR(got.at(i), tensor.at(i), 1e-12) << name << " " << i;
  }
}

TEST_F(AttentionCommand, DescribesARunAndADryRun) {
  const Outcome outcome = run_with({"--json", "--causal", "--dtype", "f32", "--threads", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["method"], "exact");
  EXPECT_EQ(json["n"], 9);
  EXPECT_EQ(json["heads"], 4);
  EXPECT_EQ(json["head_size"], 8);
  EXPECT_EQ(json["dtype"], "f32");
  EXPECT_GT(json["seconds"], 0);
  for (const char* key : {"degree", "features", "clusters", "window"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_EQ(json["certificate"]["kind"], "exact");
  EXPECT_EQ(SafetensorsFile::read(folder_ / "out.safetensors").type("dK").dtype, DType::f32);

  const Outcome dry = run({"attention", "--inputs", write(), "--dry-run", "--json"});
  ASSERT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_TRUE(Json::parse(dry.out)["seconds"].is_null());
  EXPECT_GT(Json::parse(dry.out)["peak_bytes"], 0);
}

TEST_F(AttentionCommand, HasTheSameBitsForEveryNumberOfThreads) {
  Rng rng(2);
  tensors_.clear();
  for (const char* name : {"Q", "K", "V", "G"}) tensors_[name] = random_tensor({2, 300, 16}, rng);
  ASSERT_EQ(run_with({"--threads", "1", "--dtype", "f32"}).exit_code, 0);
  const std::string one = read_text(folder_ / "out.safetensors");
  ASSERT_EQ(run_with({"--threads", "3", "--dtype", "f32"}).exit_code, 0);
  EXPECT_TRUE(read_text(folder_ / "out.safetensors") == one);
}

TEST_F(AttentionCommand, TakesNoTokensAndOne) {
  Rng rng(3);
  tensors_.clear();
  for (const char* name : {"Q", "K", "V", "G"}) tensors_[name] = random_tensor({2, 1, 4}, rng);
  ASSERT_EQ(run_with().exit_code, 0);
  const SafetensorsFile one = SafetensorsFile::read(folder_ / "out.safetensors");
  EXPECT_EQ(one.tensor("O"), tensors_["V"]);
  EXPECT_EQ(one.tensor("dV"), tensors_["G"]);
  for (const double x : one.tensor("dQ").elements<double>()) EXPECT_NEAR(x, 0, 1e-15);
  for (const char* name : {"Q", "K", "V", "G"}) tensors_[name] = random_tensor({2, 0, 4}, rng);
  ASSERT_EQ(run_with().exit_code, 0);
  EXPECT_EQ(SafetensorsFile::read(folder_ / "out.safetensors").type("dK").shape, (Shape{2, 0, 4}));
}

TEST_F(AttentionCommand, RefusesShapesThatDoNotFit) {
  Rng rng(4);
  const auto with = [&](const std::string& name, Shape shape, const std::string& message) {
    const Tensor before = tensors_[name];
    tensors_[name] = random_tensor(std::move(shape), rng);
    expect_refusal(2, message);
    tensors_[name] = before;
  };
  with("K", {2, 11, 7}, "K has another head size (last axis) than Q, expected 8, found 7");
  with("V", {1, 11, 5}, "V has another number of heads (first axis) than K, expected 2, found 1");
  with("V", {2, 10, 5}, "V has another number of keys (second axis) than K, expected 11, found 10");
  with("G", {2, 9, 5}, "G has another number of heads (first axis) than Q, expected 4, found 2");
  with("G", {4, 8, 5}, "G has another number of queries (second axis) than Q, expected 9, found 8");
  with("G", {4, 9, 8}, "G has another value size (last axis) than V, expected 5, found 8");
  with("Q", {4, 72}, "is f64[4,72], expected [heads, queries, head_size]");
  with("key_mask", {11}, "is f64[11], expected integers or booleans of shape [11]");
  tensors_["K"] = random_tensor({3, 11, 8}, rng), tensors_["V"] = random_tensor({3, 11, 5}, rng);
  expect_refusal(2, "the 3 heads of K and V do not divide the 4 heads of Q");
}

TEST_F(AttentionCommand, RefusesAMaskOfTheWrongLengthOrWithOtherNumbers) {
  tensors_["key_mask"] = Tensor::of<std::int64_t>({3}, {1, 1, 0});
  expect_refusal(2, "key_mask\" of file");
  tensors_["key_mask"] = Tensor::of<std::int64_t>({11}, {1, 1, 0, 1, 1, 1, 7, 0, 1, 1, 1});
  expect_refusal(2, "has 7 at [6], expected 0 or 1");
}

TEST_F(AttentionCommand, RefusesEntriesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const char* name : {"Q", "K", "V", "G"}) {
    const double before = tensors_[name].at(13);
    tensors_[name].set(13, nan);
    expect_refusal(2, std::string("tensor \"") + name + "\" of file");
    tensors_[name].set(13, before);
  }
  tensors_["V"].set(57, -inf);
  expect_refusal(2, "has -inf at [1,0,2], expected finite numbers");
  tensors_["V"].set(57, 1e60);
  expect_refusal(2, "has inf at [1,0,2], expected finite numbers", {"--dtype", "f32"});
}

TEST_F(AttentionCommand, RefusesMissingTensorsAndUnknownMetadata) {
  for (const auto& [key, value, message] :
       {std::array{"causal", "maybe", "have causal = \"maybe\", expected 0 or 1"},
        std::array{"scale", "nan", "have scale = \"nan\", expected a finite number"},
        std::array{"window", "-1", "have window = \"-1\", expected a whole number, at least 0"},
        std::array{"heads", "3", "metadata heads and shapes differ, expected 4, found 3"},
        std::array{"kv_heads", "4", "metadata kv_heads and shapes differ, expected 2, found 4"}}) {
    metadata_ = {{key, value}};
    expect_refusal(2, message);
  }
  metadata_ = {};
  tensors_.erase("G");
  expect_refusal(2, "holds no tensor \"G\", expected the cotangent of O");
}

TEST_F(AttentionCommand, RefusesOptionsThatItCannotServe) {
  expect_refusal(2, "exact", {"--method", "exakt"});
  expect_refusal(2, "--scale x: expected a number", {"--scale", "x"});
  expect_refusal(2, "--window", {"--window", "0"});
  expect_refusal(2, "--tolerance 0: expected a positive number", {"--tolerance", "0"});
  expect_refusal(2, "--degree 2: has no meaning", {"--degree", "2"});
  expect_refusal(2, "--clusters 4: has no meaning", {"--method", "almost-linear", "--clusters", "4"});
  expect_refusal(2, "--degree 2: has no meaning", {"--method", "clustered", "--degree", "2"});
  expect_refusal(2, "--degree 13: expected 1 to 12", {"--method", "almost-linear", "--degree", "13"});
  expect_refusal(2, "--degree 0", {"--method", "almost-linear", "--degree", "0"});
  expect_refusal(2, "hermite", {"--method", "almost-linear", "--coefficients", "hermit"});
  expect_refusal(2, "12 clusters of 11 keys, expected at most as many as keys",
                 {"--method", "clustered", "--clusters", "12"});
  expect_refusal(4, "--memory-limit 1k", {"--memory-limit", "1k"});
  expect_refusal(4, "--memory-limit 100k: attention of this size needs",
                 {"--method", "almost-linear", "--degree", "12", "--memory-limit", "100k"});
}

TEST_F(AttentionCommand, RefusesDegreesWhoseFeaturesNoMemoryHolds) {
  Rng rng(5);
  tensors_.clear();
  for (const char* name : {"Q", "K", "V", "G"}) tensors_[name] = random_tensor({1, 4, 128}, rng);
  expect_refusal(4, "features for heads of size 128, whose sums no memory holds; expected a lower degree",
                 {"--method", "almost-linear", "--degree", "12"});
}

TEST_F(AttentionCommand, ApproximatesWithACertificateForEachHead) {
  Rng rng(6);
  tensors_.clear();
  for (const char* name : {"Q", "K"}) {
    tensors_[name] = random_tensor({2, 600, 8}, rng);
    for (double& x : tensors_[name].elements<double>()) x *= 0.4;
  }
  for (const char* name : {"V", "G"}) tensors_[name] = random_tensor({2, 600, 8}, rng);
  metadata_ = {{"causal", "1"}};
  const Outcome outcome =
      run_with({"--json", "--method", "almost-linear", "--degree", "4", "--window", "16"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["method"], "almost-linear");
  EXPECT_EQ(json["degree"], 4);
  EXPECT_EQ(json["features"], 495);
  EXPECT_EQ(json["window"], 16);
  ASSERT_EQ(json["plan"].size(), 2U);
  for (const char* name : {"O", "dQ", "dK", "dV"}) {
    const Json& measured = json["certificate"]["measured"][name];
    ASSERT_EQ(measured.size(), 3U) << name;
    EXPECT_LE(measured[1], measured[0]) << name;
    EXPECT_GE(measured[2], measured[0]) << name;
    EXPECT_LT(measured[0], 0.02) << name;
  }
  EXPECT_EQ(json["plan"][1]["reason"], "as asked for");
}

TEST_F(AttentionCommand, PlansEachHeadWithoutARun) {
  const Outcome outcome = run({"attention", "--inputs", write(), "--dry-run", "--json", "--method", "auto"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_TRUE(json["seconds"].is_null());
  ASSERT_EQ(json["plan"].size(), 2U);
  EXPECT_EQ(json["plan"][0]["forward"], "exact");
  EXPECT_GT(json["plan"][0]["logit_spread"], 0);
  EXPECT_GT(json["plan"][0]["predicted_flops"], 0);
  EXPECT_GT(json["plan"][0]["predicted_bytes"], 0);
}

TEST_F(AttentionCommand, TellsOfErrorsAboveTheTolerance) {
  const Outcome outcome = run_with({"--method", "almost-linear", "--degree", "3", "--tolerance", "1e-9"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("--degree 3 is odd"));
  EXPECT_THAT(outcome.err, HasSubstr("the audit of 2 of 2 heads of keys found errors above the tolerance of 1e-09"));
}

TEST_F(AttentionCommand, APolynomialInTheFileTakesThePlaceOfExp) {
  tensors_["coef"] = Tensor::of<double>({3}, {1, 1, 0.5});
  const Outcome outcome = run_with({"--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["features"], 45);
  const SafetensorsFile file = SafetensorsFile::read(folder_ / "out.safetensors");
  double expected = 0;
  for (std::int64_t j = 0; j < 11; ++j) {
    double x = 0;
    for (std::int64_t c = 0; c < 8; ++c)
      x += tensors_["Q"].at(c) * tensors_["K"].at(j * 8 + c) / std::sqrt(8.0);
    expected += tensors_["key_mask"].at(j) * (1 + x + x * x / 2);
  }
  EXPECT_NEAR(file.tensor("denominator").at(0), expected, 1e-12 * expected);
  fs::remove(folder_ / "out.safetensors");
  tensors_["coef"] = Tensor::of<double>({1}, {1});
  expect_refusal(2, "expected the 2 to 13 coefficients of a polynomial");
  tensors_["coef"] = Tensor::of<double>({2}, {1, std::numeric_limits<double>::infinity()});
  expect_refusal(2, "\"coef\"");
  tensors_["coef"] = Tensor::of<double>({2}, {1, 1});
  metadata_ = {{"window", "3"}};
  expect_refusal(3, "polynomial attention has no window");
}

TEST_F(AttentionCommand, RefusesFilesThatCannotBeReadOrWritten) {
  EXPECT_EQ(run({"attention", "--inputs", folder_ / "none", "--out", folder_ / "out"}).exit_code, 5);
  EXPECT_EQ(run({"attention", "--inputs", write(), "--out", folder_ / "none/out"}).exit_code, 5);
  EXPECT_EQ(run({"attention", "--inputs", write()}).exit_code, 2);
}

}  // namespace loipe::test
