// SPDX-License-Identifier: Apache-2.0
// loipe transformer: results, and what is wrong with a model file.
#include <cmath>
#include <functional>

#include "command_line.h"
#include "tensor/safetensors.h"

namespace loipe::test {
namespace {

std::string model(const std::string& name) {
  return LOIPE_SOURCE_DIR "/tests/data/transformer/" + name + ".safetensors";
}
const std::string kGpt = model("gpt_m2_causal_ce_d8_h2");

struct Contents {
  NamedTensors tensors;
  Metadata metadata;
  Tensor& operator[](const std::string& name) {
    for (auto& [known, tensor] : tensors)
      if (known == name) return tensor;
    ADD_FAILURE() << "no tensor " << name;
    return tensors.front().second;
  }
  void erase(const std::string& name) {
    std::erase_if(tensors, [&](const auto& entry) { return entry.first == name; });
  }
};

Contents contents(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::read(path);
  Contents result{{}, file.metadata()};
  for (const std::string& name : file.names()) result.tensors.emplace_back(name, file.tensor(name));
  return result;
}

/// The run on a changed file fails with this code, says this, and leaves no output.
void expect_refused(const std::string& base, const std::function<void(Contents&)>& change, int code,
                    const std::string& part, const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  Contents changed = contents(base);
  change(changed);
  write_safetensors(folder / "in.safetensors", changed.tensors, changed.metadata);
  std::vector<std::string> arguments{"transformer", "--inputs", folder / "in.safetensors", "--out",
                                     folder / "out.safetensors"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(TransformerCommand, WritesLossOutputAndAllGradients) {
  const TemporaryFolder folder;
  const Json json =
      run_json({"transformer", "--inputs", kGpt, "--out", folder / "out.safetensors", "--threads", "2"});
  EXPECT_EQ(json["method"], "exact");
  EXPECT_EQ(json["n"], 24);
  EXPECT_EQ(json["layers"], 2);
  EXPECT_EQ(json["head_size"], 4);
  EXPECT_GT(json["peak_bytes"], 0);
  const SafetensorsFile file = SafetensorsFile::read(folder / "out.safetensors");
  const SafetensorsFile expected = SafetensorsFile::read(kGpt);
  for (const std::string& name : expected.names())
    if (name == "loss" || name == "output" || name.starts_with("grad.")) {
      ASSERT_TRUE(file.has(name)) << name;
      EXPECT_EQ(file.type(name), expected.type(name)) << name;
    }
}

TEST(TransformerCommand, TheSameBitsForAnyThreadsAndMemory) {
  const TemporaryFolder folder;
  run_ok({"transformer", "--inputs", kGpt, "--out", folder / "a", "--threads", "1"});
  run_ok({"transformer", "--inputs", kGpt, "--out", folder / "b", "--threads", "3"});
  EXPECT_EQ(read_text(folder / "a"), read_text(folder / "b"));
  const Outcome refused =
      run({"transformer", "--inputs", kGpt, "--out", folder / "c", "--memory-limit", "1"});
  EXPECT_EQ(refused.exit_code, 4);
  const std::size_t at = refused.err.find("needs ") + 6;
  run_ok({"transformer", "--inputs", kGpt, "--out", folder / "c", "--threads", "0", "--memory-limit",
          refused.err.substr(at, refused.err.find(' ', at) - at)});
  EXPECT_EQ(read_text(folder / "a"), read_text(folder / "c"));
}

TEST(TransformerCommand, RefusesWhatIsWrongWithTheFile) {
  const auto with = [](const std::string& key, const std::string& value) {
    return [=](Contents& c) { c.metadata[key] = value; };
  };
  expect_refused(kGpt, with("arch", "gptt"), 2, "arch = \"gptt\", expected one of stack, gpt, bert");
  expect_refused(kGpt, [](Contents& c) { c.metadata.erase("arch"); }, 2, "lack arch");
  expect_refused(kGpt, with("heads", "3"), 2, "3 heads do not divide");
  expect_refused(kGpt, with("heads", "two"), 2, "heads = \"two\", expected a whole number");
  expect_refused(kGpt, with("layers", "3"), 2, "holds no tensor \"weight.layer2.ln1_gamma\"");
  expect_refused(kGpt, with("layers", "1000000000000"), 2,
                 "holds no tensor \"weight.layer999999999999.ln1_gamma\"");
  expect_refused(kGpt, with("causal", "maybe"), 2, "causal = \"maybe\", expected 0 or 1");
  expect_refused(kGpt, with("loss", "hinge"), 2, "expected one of square, cross_entropy");
  expect_refused(kGpt, with("scale", "inf"), 2, "expected a finite number");
  expect_refused(kGpt, with("activation", "gelo"), 2, "did you mean 'gelu'");
  expect_refused(kGpt, with("norm_eps", "-1"), 2, "norm_eps is -1");
  expect_refused(kGpt, [](Contents& c) { c.erase("weight.layer1.W_O"); }, 2, "weight.layer1.W_O");
  expect_refused(
      kGpt, [](Contents& c) { c["weight.layer1.b_1"] = Tensor({DType::f64, {3}}); }, 2,
      "\"weight.layer1.b_1\" of file");
  expect_refused(kGpt, [](Contents& c) { c["target"].set(5, 11); }, 2, "has 11 at [5], expected 0 to 10");
  expect_refused(kGpt, [](Contents& c) { c["X"].set(9, std::nan("")); }, 2, "\"X\" of file");
  expect_refused(kGpt, [](Contents& c) { c["X"].set(9, std::nan("")); }, 2, "has NaN at [1,1]");
  expect_refused(kGpt, [](Contents& c) { c["weight.layer0.W_2"].set(8, -INFINITY); }, 2, "has -inf at [1,0]");
  expect_refused(
      kGpt,
      [](Contents& c) {
        c["X"] = Tensor({DType::f64, {0, 8}});
        c["target"] = Tensor({DType::i64, {0}});
      },
      2, "no tokens");
  expect_refused(kGpt, [](Contents&) {}, 2, "did you mean 'exact'", {"--method", "exactly"});
  expect_refused(kGpt, with("scale", "1e39"), 2, "infinite in f32", {"--dtype", "f32"});
  expect_refused(kGpt, [](Contents&) {}, 2, "--tolerance foo", {"--tolerance", "foo"});
  expect_refused(kGpt, [](Contents&) {}, 2, "--clusters 3: has no meaning", {"--clusters", "3"});
  expect_refused(kGpt, [](Contents&) {}, 2, "25 clusters of 24 keys",
                 {"--method", "clustered", "--clusters", "25"});
  expect_refused(kGpt, [](Contents&) {}, 4, "memory limit", {"--memory-limit", "1k"});
}

TEST(TransformerCommand, ApproximatesEachHeadWithAReport) {
  const TemporaryFolder folder;
  const std::vector<std::string> approximate{"transformer", "--inputs",      kGpt,       "--json",
                                             "--method",    "almost-linear", "--degree", "6"};
  std::vector<std::string> run_it = approximate, plan_it = approximate;
  run_it.insert(run_it.end(), {"--out", folder / "a"});
  plan_it.push_back("--dry-run");
  const Json json = run_json(run_it);
  run_ok({"transformer", "--inputs", kGpt, "--out", folder / "b"});
  EXPECT_EQ(json["method"], "almost-linear");
  ASSERT_EQ(json["plan"].size(), 2U);
  ASSERT_EQ(json["plan"][1].size(), 2U);
  EXPECT_EQ(json["plan"][1][0]["backward"], "almost-linear");
  EXPECT_EQ(json["plan"][1][0]["degree"], 6);
  EXPECT_FALSE(json["certificate"]["measured"]["dQ"].is_null());
  const SafetensorsFile is = SafetensorsFile::read(folder / "a"),
                        should = SafetensorsFile::read(folder / "b");
  double difference = 0, size = 0;
  for (const std::string& name : should.names()) {
    const Tensor a = is.tensor(name), b = should.tensor(name);
    for (std::int64_t i = 0; i < b.element_count(); ++i)
      difference += std::pow(a.at(i) - b.at(i), 2), size += std::pow(b.at(i), 2);
  }
  EXPECT_GT(difference, 0);
  EXPECT_LT(std::sqrt(difference / size), 0.05);

  const Json dry = run_json(plan_it);
  EXPECT_TRUE(dry["loss"].is_null());
  ASSERT_EQ(dry["plan"].size(), 2U);
  EXPECT_EQ(dry["plan"][0][0]["degree"], 6);
  EXPECT_GT(dry["plan"][0][0]["logit_spread"], 0);
}

/// The benchmark has the name of a command.
TEST(TransformerCommand, BenchTransformerIsTheBenchmark) {
  const Json json =
      run_json({"bench", "transformer", "--scale", "1", "--orders", "reverse", "--repetitions", "1"});
  EXPECT_EQ(json["task"], "Encoder");
}

TEST(TransformerCommand, OneTokenAndNoTokens) {
  const TemporaryFolder folder;
  Contents c = contents(model("stack_m2_causal_res_sq_d12_h3"));
  for (std::int64_t tokens : {1, 0}) {
    c["X"] = Tensor({DType::f64, {tokens, 12}});
    c["target"] = Tensor({DType::f64, {tokens, 12}});
    write_safetensors(folder / "in", c.tensors, c.metadata);
    run_ok({"transformer", "--inputs", folder / "in", "--out", folder / "out"});
    EXPECT_EQ(SafetensorsFile::read(folder / "out").tensor("loss").at(0), 0);
  }
}

}  // namespace
}  // namespace loipe::test
