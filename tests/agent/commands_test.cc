// SPDX-License-Identifier: Apache-2.0
// loipe train, and search with what it wrote, as a user sees them.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/command_line.h"

namespace loipe::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A short training on a small function.
std::vector<std::string> training(const std::string& out, const std::string& rounds = "2") {
  return {"train",    "--tasks", "HumanHeartDipole", "--rounds", rounds,  "--games", "8", "--width", "8",
          "--layers", "1",       "--seed",           "3",        "--out", out};
}

TEST(TrainCommand, WritesAnAgentAndTellsHowItLearnt) {
  const TemporaryFolder folder;
  const std::string file = folder / "agent.safetensors";
  const Json json = run_json(training(file));
  EXPECT_EQ(json["tasks"], "HumanHeartDipole");
  EXPECT_EQ(json["seed"], 3);
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_EQ(json["games"], 16);
  EXPECT_GT(json["simulated_moves"], json["moves"]);
  EXPECT_EQ(json["best"][0]["cost"], 148);
  EXPECT_EQ(json["best"][0]["order"].size(), 78u);
  EXPECT_EQ(json["curve"][0]["round"], 0);
  EXPECT_EQ(json["curve"].back()["round"], 2);
  EXPECT_EQ(json["curve"].back()["policy_costs"].size(), 1u);
  EXPECT_THAT(json["command"], HasSubstr("--seed 3 --rounds 2 --games 8"));
  EXPECT_EQ(folder.file_count(), 1u);

  const Json found =
      run_json({"search", "HumanHeartDipole", "--method", "alphagrad", "--agent", file, "--budget", "1"});
  EXPECT_EQ(found["multiplications"]["published"], 148);
  EXPECT_EQ(found["agent"], json["agent"]);
}

TEST(TrainCommand, SameSeedSameAgentAtAnyNumberOfThreads) {
  const TemporaryFolder folder;
  std::vector<Json> results;
  for (const char* threads : {"1", "2"}) {
    std::vector<std::string> arguments = training(folder / "agent.safetensors", "1");
    arguments.insert(arguments.end(), {"--threads", threads});
    results.push_back(run_json(arguments));
  }
  EXPECT_EQ(results[0]["agent"], results[1]["agent"]);
  EXPECT_EQ(results[0]["best"], results[1]["best"]);
}

TEST(TrainCommand, GoesOn) {
  const TemporaryFolder folder;
  const std::string file = folder / "agent.safetensors";
  run_ok(training(file, "1"));
  const Json json = run_json({"train", "--tasks", "HumanHeartDipole", "--rounds", "1", "--games", "8",
                              "--resume", file, "--out", file});
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_EQ(json["games"], 16);
}

TEST(TrainCommand, InterruptedTrainingLeavesAWholeAgent) {
  const TemporaryFolder folder;
  const std::string file = folder / "agent.safetensors";
  run_ok(training(file, "1"));
  const Process process({"train", "--tasks", "HumanHeartDipole", "--games", "8", "--resume", file, "--out",
                         file, "--budget", "600"});
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);
  EXPECT_EQ(folder.file_count(), 1u);
  run_ok({"search", "Simple", "--method", "alphagrad", "--agent", file, "--budget", "0.1"});
}

TEST(TrainCommand, Errors) {
  const TemporaryFolder folder;
  const auto expect_error = [](const std::vector<std::string>& arguments, int exit_code,
                               const std::string& message) {
    const Outcome result = run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("loipe: "));
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  };
  const std::string out = folder / "a.safetensors";
  expect_error({"train"}, 2, "option --out is missing");
  expect_error({"train", "--out", "/nonexistent/a.safetensors"}, 5, "cannot be written");
  expect_error({"train", "--tasks", "RobotArm", "--out", out}, 2, "did you mean");
  expect_error({"train", "--budget", "0", "--out", out}, 2, "--budget 0: expected seconds above 0");
  expect_error({"train", "--width", "30", "--out", out}, 2, "a network of width 30");
  expect_error({"train", "--width", "100000", "--out", out}, 2, "expected at most 512");
  expect_error({"train", "--prior", "much", "--out", out}, 2, "--prior much: expected a number");
  expect_error({"train", "--reference", "cost", "--out", out}, 2, "did you mean 'costs'?");
  expect_error({"train", "--resume", folder / "none", "--out", out}, 5, "none");
  run_ok(training(out, "1"));
  expect_error({"train", "--resume", out, "--out", out}, 2, "was trained on HumanHeartDipole, not on random");
  expect_error({"train", "--tasks", "HumanHeartDipole", "--width", "8", "--resume", out, "--out", out}, 2,
               "--width is that of the agent");

  const auto search = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"search", "Hole", "--method", "alphagrad"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_error(search({"--agent", folder / "none"}), 5, "none");
  write_text(folder / "bad", "nothing");
  expect_error(search({"--agent", folder / "bad"}), 5, "is not a valid safetensors file");
  expect_error(search({"--agent", golden("RoeFlux_1d")}), 5, "is no agent");
  expect_error(search({"--simulations", "-1"}), 2, "--simulations -1");
  expect_error(search({"--simulations", "1000000"}), 2, "expected at most 4096");
  expect_error(search({"--objective", "actual"}), 3, "plays for the published cost");
}

TEST(SearchWithAnAgent, GeneralAgentKeepsThePromisesOfSearch) {
  for (const char* simulations : {"0", "8"}) {
    const Json json = run_json({"search", "g", "--method", "alphagrad", "--simulations", simulations,
                                "--budget", "2", "--seed", "4"});
    EXPECT_LE(json["multiplications"]["published"], 417);  // the published AlphaGrad order
    EXPECT_LE(json["lower_bound"], json["multiplications"]["published"]);
    EXPECT_LE(json["seconds"], 60);
  }
  const TemporaryFolder folder;
  const Json found = run_json(
      {"search", "Perceptron", "--method", "alphagrad", "--budget", "1", "--out", folder / "order.json"});
  EXPECT_LE(found["multiplications"]["published"], 392);  // reverse
  const Json file = Json::parse(read_text(folder / "order.json"));
  EXPECT_EQ(file["agent"], found["agent"]);
  EXPECT_EQ(run_json({"count", "Perceptron", "--order", folder / "order.json"})["multiplications"],
            found["multiplications"]);
}

}  // namespace
}  // namespace loipe::test
