// SPDX-License-Identifier: Apache-2.0
// Bad input: the exit code, one clear sentence, and no file.
#include <gmock/gmock.h>

#include "cli/command_line.h"
#include "tensor/safetensors.h"

namespace loipe::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Errors : public testing::Test {
 protected:
  /// `{dir}` in an argument stands for the test's folder.
  void expect_error(std::vector<std::string> arguments, int exit_code, const std::string& message) {
    for (std::string& argument : arguments)
      if (const auto place = argument.find("{dir}"); place != std::string::npos)
        argument.replace(place, 5, folder_ / "");
    SCOPED_TRACE(testing::PrintToString(arguments));
    const std::size_t files = folder_.file_count();
    const Outcome result = run(arguments);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("loipe: "));
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_EQ(folder_.file_count(), files);
  }

  void expect_jacobian_error(std::vector<std::string> arguments, int exit_code, const std::string& message) {
    arguments.insert(arguments.begin(), "jacobian");
    arguments.insert(arguments.end(), {"--out", "{dir}out.safetensors"});
    expect_error(arguments, exit_code, message);
  }

  /// A copy of a golden file with one tensor replaced, or without it.
  std::string changed(const std::string& name, const std::string& tensor, std::optional<Tensor> now) {
    const SafetensorsFile file = SafetensorsFile::read(golden(name));
    NamedTensors tensors;
    for (const std::string& key : file.names())
      if (key != tensor) tensors.emplace_back(key, file.tensor(key));
    if (now) tensors.emplace_back(tensor, *now);
    write_safetensors(folder_ / "changed.safetensors", tensors, file.metadata());
    return folder_ / "changed.safetensors";
  }

  std::string text_file(const std::string& name, const std::string& text) {
    write_text(folder_ / name, text);
    return folder_ / name;
  }

  TemporaryFolder folder_;
};

TEST_F(Errors, Commands) {
  expect_error({}, 2, "a command is missing");
  expect_error({"coutn", "Encoder"}, 2, "unknown command 'coutn' (did you mean 'count'?)");
  expect_error({"--json"}, 2, "a command is missing");
  expect_error({"--quiet", "bencch"}, 2, "did you mean 'bench'?");
}

TEST_F(Errors, Options) {
  expect_error({"count", "Encoder", "--ordr", "reverse"}, 2,
               "unknown option '--ordr' of command 'count' (did you mean '--order'?)");
  expect_error({"count", "Encoder", "--order=reverse", "--jsn"}, 2, "did you mean '--json'?");
  expect_error({"count", "Encoder", "more"}, 2, "unexpected argument 'more'");
  expect_error({"count", "Encoder", "--order"}, 2, "--order");
  expect_error({"count", "Encoder", "--order", "reverse", "--order", "forward"}, 2, "--order");
  expect_error({"count"}, 2, "TASK is missing");
  expect_error({"jacobian", "Encoder", "--out", "{dir}x"}, 2, "option --inputs is missing");
  expect_error({"jacobian", "Encoder", "--inputs", golden("Encoder_scale1_rich")}, 2,
               "option --out is missing");
}

TEST_F(Errors, Tasks) {
  expect_error({"count", "Encodr"}, 2, "did you mean 'Encoder'?");
  expect_error({"bench", "RoeFlux1d"}, 2, "did you mean 'RoeFlux_1d'?");
  expect_error({"bench", "attention", "--n", "0"}, 2, "--n 0: expected a whole number of 1 or more");
  expect_error({"bench", "attention", "--orders", "reverse"}, 2, "option --orders has no meaning here");
  expect_error({"bench", "Encoder", "--head-size", "8"}, 2, "are for bench attention");
  expect_error({"bench", "peak", "--dtype", "f16"}, 2, "--dtype f16: expected f32, f64");
  expect_error({"bench", "peak", "--threads", "-2"}, 2, "--threads -2: expected a whole number from 0");
  expect_error({"bench", "peak", "--scale", "4"}, 2, "option --scale has no meaning here");
  expect_error({"bench", "peak", "--orders", "reverse"}, 2, "option --orders has no meaning here");
  expect_error({"bench", "peak", "--thread", "1"}, 2, "did you mean '--threads'?");
  expect_error({"bench", example("rosenbrock.loipe")}, 2, "expected a built-in task");
  expect_error({"check", example("rosenbrock.loipe")}, 2, "--inputs is missing");
}

TEST_F(Errors, Numbers) {
  expect_error({"count", "Encoder", "--scale", "0"}, 2, "--scale 0: expected a whole number of 1 or more");
  expect_error({"count", "Encoder", "--scale", "-3"}, 2, "--scale -3");
  expect_error({"count", "Encoder", "--scale", "two"}, 2, "--scale two");
  expect_error({"count", "Encoder", "--scale", "99999999999999999999"}, 2, "--scale");
  expect_error({"count", "RoeFlux_1d", "--scale", "1"}, 2, "'RoeFlux_1d' has one size only");
  expect_error({"count", example("rosenbrock.loipe"), "--scale", "2"}, 2, "has one size only");
  expect_error({"count", "RoeFlux_3d", "--batch", "0"}, 2, "--batch 0");
  expect_error({"count", "RoeFlux_1d", "--batch", "4"}, 2, "'RoeFlux_1d' describes one example");
  expect_error({"bench", "Simple", "--threads", "-1"}, 2, "--threads -1: expected a whole number from 0");
  expect_error({"bench", "Simple", "--repetitions", "0"}, 2, "--repetitions 0");
  expect_error({"bench", "Simple", "--inputs", "rch"}, 2, "did you mean 'rich'?");
  expect_error({"bench", "Simple", "--dtype", "f16"}, 2, "--dtype f16: expected f32, f64");
  expect_error({"check", "Simple", "--tolerance", "x"}, 2, "--tolerance x");
  expect_error({"jacobian", "Encoder", "--dry-run", "--memory-limit", "12X"}, 2, "--memory-limit 12X");
}

TEST_F(Errors, Passes) {
  for (const char* command : {"explain", "bench"}) {
    expect_error({command, "RoeFlux_1d", "--disable", "fusion,tilling"}, 2, "did you mean 'tiling'");
    expect_error({command, "RoeFlux_1d", "--disable", "fusion,"}, 2, "--disable");
  }
  expect_error({"jacobian", "RoeFlux_1d", "--dry-run", "--disable", "kernel"}, 2, "did you mean 'kernels'");
  expect_error({"explain", "RoeFlux_1d", "--dump", "kernel"}, 2, "did you mean 'kernels'");
  expect_error({"explain", "RoeFlux_1d", "--dump", "fusion", "--disable", "fusion"}, 2, "shown and disabled");
  expect_error({"explain", "RoeFlux_1d", "--dump", "fusion", "--stage", "passes"}, 2, "without --stage");
  expect_error({"bench", "peak", "--disable", "fusion"}, 2, "option --disable has no meaning here");
}

TEST_F(Errors, Orders) {
  expect_error({"count", "Encoder", "--order", "revers"}, 2, "did you mean 'reverse'?");
  expect_error({"count", "Encoder", "--order", "besst"}, 2, "did you mean 'best'?");
  expect_error({"count", "Encoder", "--order", "fast"}, 2, "best, random:SEED, or a JSON file");
  expect_error({"count", "Simple", "--order", "alphagrad"}, 2, "no published order 'alphagrad' for 'Simple'");
  expect_error({"count", example("rosenbrock.loipe"), "--order", "best"}, 2, "no order 'best' for");
  expect_error({"count", "Simple", "--order", "random:x"}, 2, "random:SEED");
  expect_error({"count", "Simple", "--order", "{dir}none.json"}, 5, "none.json");
  const auto order = [&](const std::string& text) { return text_file("order.json", text); };
  expect_error({"count", "Simple", "--order", order("[1,1]")}, 2, "repeated: 1");
  expect_error({"count", "Simple", "--order", order("[1,2,77]")}, 2, "unknown: 77");
  expect_error({"count", "Simple", "--order", order("[1]")}, 2, "missing: 2");
  expect_error({"count", "Simple", "--order", order("[1,2,4]")}, 2, "outputs, which are never eliminated: 4");
  expect_error({"count", "Simple", "--order", order(R"({"task":"Hole","order":[1,2]})")}, 2,
               "is for task \"Hole\"");
  expect_error({"count", "Simple", "--order", order("[1,")}, 5, "not valid JSON");
  expect_error({"count", "Simple", "--order", order("[\"a\"]")}, 5, "not a vertex number");
}

TEST_F(Errors, Inputs) {
  const Tensor integers({DType::i64, {4}});
  const Tensor longer({DType::f64, {5}});
  const std::vector<std::string> roe{"RoeFlux_1d", "--batch", "4", "--inputs"};
  const auto with = [&](const std::string& file) {
    std::vector<std::string> arguments = roe;
    arguments.push_back(file);
    return arguments;
  };
  expect_jacobian_error(with(changed("RoeFlux_1d", "in.ur2", std::nullopt)), 2, "holds no tensor \"in.ur2\"");
  expect_jacobian_error(with(changed("RoeFlux_1d", "in.ur2", longer)), 2, "has shape [5], expected [4]");
  expect_jacobian_error(with(changed("RoeFlux_1d", "in.ur2", integers)), 2, "expected a floating dtype");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", golden("RoeFlux_1d")}, 2, "--batch 4 says");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", "{dir}none.safetensors"}, 5, "none.safetensors");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", "{dir}"}, 5, "not a regular file");
}

TEST_F(Errors, MalformedFiles) {
  const std::string whole = read_text(golden("RoeFlux_1d"));
  const auto jacobian_of = [&](const std::string& content) {
    return std::vector<std::string>{"RoeFlux_1d", "--batch", "4", "--inputs",
                                    text_file("bad.safetensors", content)};
  };
  expect_jacobian_error(jacobian_of(""), 5, "bad.safetensors");
  expect_jacobian_error(jacobian_of(whole.substr(0, 4)), 5, "bad.safetensors");
  expect_jacobian_error(jacobian_of(whole.substr(0, 100)), 5, "bad.safetensors");
  expect_jacobian_error(jacobian_of(whole.substr(0, whole.size() - 1)), 5, "bad.safetensors");
  std::string garbled = whole;
  garbled[8] = '?';
  expect_jacobian_error(jacobian_of(garbled), 5, "bad.safetensors");
  const std::string header = R"({"in.x":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  expect_jacobian_error(jacobian_of(length + header + std::string(8, '\0')), 5, "in.x");
}

TEST_F(Errors, Output) {
  const std::vector<std::string> good{"jacobian", "RoeFlux_1d",         "--batch", "4",
                                      "--inputs", golden("RoeFlux_1d"), "--out"};
  const auto to = [&](const std::string& path) {
    std::vector<std::string> arguments = good;
    arguments.push_back(path);
    return arguments;
  };
  expect_error(to("{dir}none/x.safetensors"), 5, "cannot be written");
  expect_error(to("{dir}"), 5, "it is a directory");
  expect_error(to(""), 5, "cannot be written");
  // Found before any input is read.
  expect_error({"jacobian", "RoeFlux_1d", "--inputs", "{dir}none", "--out", "{dir}none/x"}, 5, "none/x");
}

TEST_F(Errors, Jacobian) {
  const std::string roe1 = golden("RoeFlux_1d"), roe3 = golden("RoeFlux_3d");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--wrt", "ul0,url1"}, 2, "ur1");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--wrt", "ul0,ul0"}, 2, "twice");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--wrt", "ul0,,ul1"}, 2, "--wrt");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batched", "ul0"}, 2, "needs --batch");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--batched", "nul0"}, 2,
                        "did you mean 'ul0'?");
  expect_jacobian_error({"RoeFlux_3d", "--inputs", roe3, "--batch", "4", "--batched", "ul0"}, 2, "are fixed");
  expect_jacobian_error({"RoeFlux_3d", "--inputs", roe3, "--batch", "3"}, 2, "expected [3,1]");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--format", "cso"}, 2,
                        "unknown format 'cso'");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--backend", "jitt"}, 2,
                        "did you mean 'jit'?");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--threads", "-2"}, 2,
                        "--threads -2");
  expect_error({"jacobian", "RoeFlux_1d", "--emit", "fortran", "{dir}"}, 2, "the one language is c");
  expect_jacobian_error({"RoeFlux_1d", "--inputs", roe1, "--batch", "4", "--memory-limit", "1k"}, 4,
                        "memory");
}

TEST_F(Errors, Programs) {
  expect_error({"count", "{dir}none.loipe"}, 5, "none.loipe");
  expect_error(
      {"count", text_file("bad.loipe", "program f(%x: f32[2]) {\n  %1 = tahnh(%x)\n  return %1\n}\n")}, 5,
      "line 2, column 8: unknown op 'tahnh' (did you mean 'tanh'?)");
  const std::string logistic = example("logistic_regression.loipe");
  write_safetensors(folder_ / "in.safetensors", {{"in.X", Tensor({DType::f32, {8, 3}})},
                                                 {"in.w", Tensor({DType::f32, {3}})},
                                                 {"in.b", Tensor({DType::f32, {}})},
                                                 {"in.label", Tensor({DType::f32, {8}})}});
  expect_jacobian_error({logistic, "--inputs", folder_ / "in.safetensors"}, 2, "expected dtype i32");
  expect_jacobian_error({logistic, "--inputs", folder_ / "in.safetensors", "--wrt", "label"}, 2, "label");
}

TEST_F(Errors, Explain) {
  expect_error({"explain", "Simple", "--stage", "grph"}, 2, "did you mean 'graph'?");
  expect_error({"explain", "Simple", "--stage", "program", "--dot"}, 2, "expected one of the two");
}

TEST_F(Errors, FailedCheck) {
  const Outcome result = run({"check", "Encoder", "--tolerance", "0"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("check of 'Encoder' failed"));
  EXPECT_THAT(result.out, HasSubstr("FAILED"));
}

TEST_F(Errors, StandardOutputThatCannotBeWritten) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  const int status =
      std::system((std::string(LOIPE_BINARY) + " tasks > /dev/full 2> " + (folder_ / "err")).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_THAT(read_text(folder_ / "err"), HasSubstr("standard output cannot be written"));
}

}  // namespace
}  // namespace loipe::test
