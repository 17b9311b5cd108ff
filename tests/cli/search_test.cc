// SPDX-License-Identifier: Apache-2.0
// loipe search as a user sees it: fields, the order file, promises, errors.
#include <gmock/gmock.h>

#include "cli/command_line.h"

namespace loipe::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(SearchCommand, FieldsOfTheJson) {
  const Json json = run_json({"search", "HumanHeartDipole", "--budget", "5", "--seed", "7"});
  EXPECT_EQ(json["task"], "HumanHeartDipole");
  EXPECT_EQ(json["multiplications"]["published"], 148);
  EXPECT_TRUE(json["multiplications"]["actual"].is_number());
  EXPECT_TRUE(json["multiplications"]["folded"].is_number());
  EXPECT_EQ(json["objective"], "published");
  EXPECT_TRUE(json["method"].is_string());
  EXPECT_EQ(json["lower_bound"], 148);
  EXPECT_EQ(json["optimal"], true);
  EXPECT_LE(json["seconds"], 60);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["order"].size(), 78u);
  ASSERT_FALSE(json["history"].empty());
  EXPECT_EQ(json["history"].back()[1], 148);
}

TEST(SearchCommand, OrderFileIsCountedAlike) {
  const TemporaryFolder folder;
  const std::string file = folder / "order.json";
  const Json found = run_json({"search", "RoeFlux_1d", "--budget", "1", "--out", file});
  const Json counted = run_json({"count", "RoeFlux_1d", "--order", file});
  EXPECT_EQ(counted["multiplications"], found["multiplications"]);
  EXPECT_EQ(counted["order"], found["order"]);
  EXPECT_LT(found["multiplications"]["published"], 320);
  EXPECT_EQ(found["lower_bound"] < found["multiplications"]["published"], !found["optimal"]);
  const Json order = Json::parse(read_text(file));
  EXPECT_EQ(order["task"], "RoeFlux_1d");
  EXPECT_EQ(order["cost"], found["multiplications"]["published"]);
  EXPECT_EQ(order["method"], found["method"]);
  EXPECT_EQ(order["seed"], 0);
  EXPECT_EQ(order["objective"], "published");
  EXPECT_EQ(order["graph"].get<std::string>().size(), 16u);
}

/// It ends, that is; how exactly the budget is kept is measured, not tested: other work may hold it up.
TEST(SearchCommand, EndsWithItsBudget) {
  for (const char* method : {"auto", "greedy", "beam", "anneal", "exact"}) {
    const Json json = run_json({"search", "Encoder", "--method", method, "--budget", "1", "--no-reduce"});
    EXPECT_LE(json["seconds"], 20) << method;
    EXPECT_LE(json["multiplications"]["published"], 4688) << method;
  }
}

TEST(SearchCommand, ProgramsAndSizes) {
  const Json file = run_json({"search", example("rosenbrock.loipe"), "--budget", "1"});
  EXPECT_EQ(file["optimal"], true);
  const Json large = run_json({"search", "Encoder", "--scale", "16", "--budget", "2"});
  EXPECT_LE(large["multiplications"]["published"], 189559296);
  const Json batch = run_json({"search", "Perceptron", "--scale", "16", "--batch", "512", "--budget", "2"});
  EXPECT_LE(batch["multiplications"]["published"], 18253824);
  EXPECT_THAT(run_ok({"search", "Hole", "--budget", "1"}).out,
              HasSubstr("22 multiplications (published), proved optimal"));
}

TEST(SearchCommand, ActualCost) {
  const Json reverse = run_json({"count", "RoeFlux_1d", "--order", "reverse"})["multiplications"];
  const Json found = run_json({"search", "RoeFlux_1d", "--objective", "actual", "--budget", "2"});
  EXPECT_EQ(found["objective"], "actual");
  EXPECT_LT(found["multiplications"]["actual"], 216) << "that of the best published cost";
  EXPECT_LE(found["multiplications"]["actual"], reverse["actual"]);
  EXPECT_EQ(found["history"].back()[1], found["multiplications"]["actual"]);
  EXPECT_LE(found["seconds"], 40);
}

TEST(SearchCommand, BestOrdersAreShipped) {
  EXPECT_EQ(run_json({"count", "RoeFlux_1d", "--order", "best"})["multiplications"]["published"], 295);
  EXPECT_EQ(run_json({"count", "Encoder", "--order", "best"})["multiplications"]["published"], 4332);
}

TEST(SearchCommand, Errors) {
  const auto expect_error = [](std::vector<std::string> arguments, int exit_code,
                               const std::string& message) {
    arguments.insert(arguments.begin(), "search");
    const Outcome result = run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("loipe: "));
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  };
  expect_error({"RoeFlux1d"}, 2, "did you mean 'RoeFlux_1d'?");
  expect_error({"g", "--method", "aneal"}, 2, "did you mean 'anneal'?");
  expect_error({"g", "--method", "alphagrad"}, 3, "not available in this version");
  expect_error({"g", "--objective", "publshed"}, 2, "did you mean 'published'?");
  expect_error({"g", "--objective", "time"}, 3, "--objective time is not available");
  expect_error({"g", "--moves", "edge"}, 3, "--moves edge is not available");
  expect_error({"g", "--budget", "0"}, 2, "--budget 0: expected seconds above 0");
  expect_error({"g", "--budget", "nan"}, 2, "--budget nan: expected seconds above 0");
  expect_error({"g", "--seed", "-1"}, 2, "--seed -1: expected a whole number of 0 or more");
  expect_error({"g", "--threads", "x"}, 2, "--threads x: expected");
  expect_error({"g", "--scale", "2"}, 2, "'g' has one size only");
  expect_error({"RoeFlux_1d", "--batch", "2"}, 2, "takes no --batch");
  expect_error({"g", "--out", "/nonexistent/x.json"}, 5, "cannot be written");
  expect_error({"none.loipe"}, 5, "none.loipe");
}

}  // namespace
}  // namespace loipe::test
