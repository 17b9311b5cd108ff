// SPDX-License-Identifier: Apache-2.0
// What scripts rely on: fields, numbers, exit codes of success, quiet and help.
#include <gmock/gmock.h>

#include <csignal>
#include <thread>

#include "cli/command_line.h"

namespace loipe::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Contract, PublishedCounts) {
  const auto published = [](const std::string& task, const std::string& order,
                            std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"count", task, "--order", order});
    return run_json(more)["multiplications"]["published"];
  };
  EXPECT_EQ(published("RoeFlux_1d", "alphagrad"), 320);
  EXPECT_EQ(published("RoeFlux_3d", "markowitz"), 956);
  EXPECT_EQ(published("f", "markowitz-published"), 12257);
  EXPECT_EQ(published("Encoder", "reverse"), 4688);
  EXPECT_EQ(published("Encoder", "reverse", {"--scale", "16"}), 191418368);
  EXPECT_EQ(published("transformer", "alphagrad"), 189559296);
  EXPECT_EQ(published("BlackScholes_Jacobian", "forward"), 545);
  EXPECT_EQ(published("BlackScholes_Jacobian", "markowitz"), 350);
  EXPECT_EQ(published("BlackScholes_Jacobian", "forward", {"--corrected"}), 582);
  EXPECT_EQ(published("BlackScholes_Jacobian", "reverse", {"--corrected"}), 501);
  EXPECT_EQ(published("BlackScholes_Jacobian", "markowitz", {"--corrected"}), 350);
  EXPECT_EQ(published("BlackScholes_Jacobian", "markowitz-published", {"--corrected"}), 356);
}

TEST(Contract, PublishedCountIsNullForHigherRanks) {
  const TemporaryFolder folder;
  write_text(folder / "cube.loipe",
             "program cube(%x: f32[2,2,2]) {\n  %1 = sin(%x)\n  %2 = exp(%1)\n  return %2\n}\n");
  const Json json = run_json({"count", folder / "cube.loipe"});
  EXPECT_TRUE(json["multiplications"]["published"].is_null());
  EXPECT_EQ(json["multiplications"]["actual"], 8);
}

TEST(Contract, CountFields) {
  const Json json = run_json({"count", "RoeFlux_3d", "--batch", "2"});
  EXPECT_EQ(json["task"], "RoeFlux_3d");
  EXPECT_EQ(json["scale"], 1);
  EXPECT_EQ(json["batch"], 2);
  EXPECT_EQ(json["order_name"], "reverse");
  EXPECT_EQ(json["vertices"], 146);
  EXPECT_EQ(json["eliminated"], 143);
  for (const char* model : {"published", "actual", "folded"})
    EXPECT_TRUE(json["multiplications"][model].is_number_integer()) << model;
  for (const char* model : {"actual", "folded"})
    EXPECT_TRUE(json["additions"][model].is_number_integer()) << model;
}

TEST(Contract, CountTable) {
  const Outcome result = run_ok({"count", "Encoder"});
  for (const char* text :
       {"forward", "reverse", "markowitz", "markowitz-published", "alphagrad", "135,010", "4,656"})
    EXPECT_THAT(result.out, HasSubstr(text));
  EXPECT_EQ(result.err, "");
}

TEST(Contract, AnOrderFromAFile) {
  const TemporaryFolder folder;
  write_text(folder / "order.json", R"({"task": "Simple", "order": [2, 1]})");
  const Json json = run_json({"count", "Simple", "--order", folder / "order.json"});
  EXPECT_EQ(json["multiplications"], run_json({"count", "Simple"})["multiplications"]);
  EXPECT_EQ(json["order"], Json({2, 1}));
}

TEST(Contract, Lists) {
  const Json tasks = run_json({"tasks"})["tasks"];
  EXPECT_EQ(tasks.size(), 18U);
  EXPECT_EQ(tasks[9]["name"], "Encoder");
  EXPECT_EQ(tasks[9]["arguments"].size(), 16U);
  EXPECT_EQ(tasks[9]["has_scale"], true);
  bool has_floor = false;
  const Json ops = run_json({"ops"});
  for (const Json& op : ops["ops"]) {
    EXPECT_TRUE(op["differentiable"] == true || op["why_not"].is_string()) << op["name"];
    has_floor |= op["name"] == "floor";
  }
  EXPECT_TRUE(has_floor);
  const Json info = run_json({"info"});
  for (const char* field : {"version", "compiler", "cpu", "simd", "cores", "backends", "optional"})
    EXPECT_TRUE(info.contains(field)) << field;
}

TEST(Contract, Bench) {
  const Json json = run_json({"bench", "Encoder", "--orders", "reverse,markowitz-published", "--repetitions",
                              "3", "--threads", "1"});
  EXPECT_EQ(json["task"], "Encoder");
  EXPECT_EQ(json["dtype"], "f32");
  EXPECT_EQ(json["inputs"], "rich");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_GT(json["machine"]["fma_gflops"], 0.1);
  EXPECT_GT(json["machine"]["gemm_gflops"], 0.1);
  ASSERT_EQ(json["rows"].size(), 2U);
  for (const Json& row : json["rows"]) {
    EXPECT_LT(row["max_rel_error"], 2e-4);
    EXPECT_GT(row["median_ms"], 0);
    EXPECT_GT(row["compile_ms"], 0);
    EXPECT_GT(row["peak_bytes"], 0);
    EXPECT_LE(row["min_ms"], row["p10_ms"]);
    EXPECT_LE(row["p10_ms"], row["median_ms"]);
    EXPECT_LE(row["median_ms"], row["p90_ms"]);
    EXPECT_GT(row["fraction_of_peak"], 0);
    EXPECT_TRUE(row["published_ms"]["cpu"].is_null());
  }
  EXPECT_EQ(json["rows"][1]["order"], "markowitz-published");
}

TEST(Contract, BenchOfTasksWithAndWithoutBatchAxis) {
  for (const char* task : {"RoeFlux_1d", "RoeFlux_3d"})
    for (const char* batch : {"1", "5"}) {
      const Json json = run_json(
          {"bench", task, "--batch", batch, "--repetitions", "1", "--dtype", "f64", "--orders", "forward"});
      EXPECT_LT(json["rows"][0]["max_rel_error"], 1e-9) << task;
      EXPECT_EQ(json["batch"], std::stoi(batch));
    }
}

TEST(Contract, BenchOfStructuralNonZeros) {
  EXPECT_EQ(run_json({"bench", "Simple", "--repetitions", "1"})["format"], "dense");
  for (const char* task : {"RoeFlux_3d", "HumanHeartDipole", "Encoder"})
    for (const char* batch : {"1", "5"}) {
      const Json json = run_json({"bench", task, "--batch", batch, "--repetitions", "1", "--dtype", "f64",
                                  "--orders", "reverse", "--format", "coo"});
      EXPECT_EQ(json["format"], "coo");
      EXPECT_LT(json["rows"][0]["max_rel_error"], 1e-9) << task;
    }
  EXPECT_THAT(run_ok({"bench", "Simple", "--repetitions", "1", "--format", "coo"}).out,
              HasSubstr("structural non-zeros only"));
}

/// Structure and what holds on any machine, however busy.
TEST(Contract, BenchPeak) {
  const Json json = run_json({"bench", "peak", "--threads", "2", "--dtype", "f64"});
  EXPECT_EQ(json["dtype"], "f64");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_GT(json["machine"]["fma_gflops"], 0.1);
  EXPECT_GT(json["machine"]["gemm_gflops"], 0.01);
  // Every width, every product and every level, on one thread and on two.
  EXPECT_EQ(json["fma"].size() % 2, 0U);
  EXPECT_EQ(json["fma"][0]["simd"], json["machine"]["simd"]);
  EXPECT_EQ(json["fma"].back()["bits"], 128);
  EXPECT_EQ(json["products"].size(), 8U);
  EXPECT_GE(json["memory"].size(), 6U);
  for (const char* kind : {"fma", "products", "memory"}) {
    EXPECT_EQ(json[kind][0]["threads"], 1);
    EXPECT_EQ(json[kind].back()["threads"], 2);
  }
  for (const Json& row : json["fma"]) EXPECT_GT(row["gflops"], 0.1);
  for (const Json& row : json["products"]) {
    EXPECT_GT(row["gflops"], 0.001);
    EXPECT_GT(row["fraction_of_peak"], 0);
  }
  std::size_t smallest = 0;
  for (const Json& row : json["memory"]) {
    if (row["level"] == "L1") smallest = 0;
    EXPECT_GT(row["bytes_per_thread"], smallest);
    smallest = row["bytes_per_thread"];
    for (const char* loop : {"read_gb_per_s", "copy_gb_per_s", "triad_gb_per_s"}) EXPECT_GT(row[loop], 0.01);
  }
  EXPECT_EQ(json["memory"].back()["level"], "DRAM");
}

TEST(Contract, BenchAttention) {
  const Json json = run_json({"bench", "attention", "--n", "65,130", "--head-size", "8,5", "--heads", "2",
                              "--causal", "--repetitions", "2", "--threads", "1"});
  EXPECT_EQ(json["task"], "attention");
  ASSERT_EQ(json["rows"].size(), 4u);
  for (const Json& row : json["rows"]) {
    EXPECT_GT(row["forward_gflops"], 0);
    EXPECT_GT(row["backward_gflops"], 0);
    EXPECT_LT(row["max_rel_error"], 1e-5);
    EXPECT_EQ(row["repetitions"], 2);
  }
  EXPECT_EQ(json["rows"][3]["n"], 130);
  EXPECT_EQ(json["rows"][3]["head_size"], 5);
}

TEST(Contract, BenchPeakTable) {
  const Outcome outcome = run_ok({"bench", "peak", "--threads", "1"});
  for (const char* text :
       {"FMA loop, ", "matrix product 1024^3", "matrix product 32 x 64^3", "DRAM", "triad GB/s"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  EXPECT_THAT(outcome.err, HasSubstr("loipe: bench peak: memory, 1 thread"));
}

TEST(Contract, BenchTableAndStages) {
  const Outcome loud = run_ok({"bench", "Simple", "--repetitions", "1"});
  EXPECT_THAT(loud.err, HasSubstr("loipe: bench Simple: reverse: compiling"));
  EXPECT_THAT(loud.out, HasSubstr("median ms"));
  EXPECT_THAT(loud.out, HasSubstr("max error"));
  const Outcome quiet = run_ok({"bench", "Simple", "--repetitions", "1", "--quiet"});
  EXPECT_EQ(quiet.err, "");
}

TEST(Contract, Check) {
  for (const char* task : {"f", "g", "RoeFlux_3d", "Perceptron", "Encoder", "KerrSenn", "CloudSchemes"}) {
    const Json json = run_json({"check", task});
    EXPECT_GE(json["checks"].size(), 7U);
    for (const Json& line : json["checks"]) EXPECT_EQ(line["holds"], true) << task << line;
  }
  run_ok({"check", "RoeFlux_1d", "--order", "random:3", "--dtype", "f32"});
  run_ok({"check", "RoeFlux_3d", "--batch", "4", "--inputs", golden("RoeFlux_3d"), "--order", "markowitz"});
}

TEST(Contract, Explain) {
  EXPECT_THAT(run_ok({"explain", "Simple"}).out, HasSubstr("accumulation program"));
  EXPECT_THAT(run_ok({"explain", "Simple", "--stage", "program"}).out, StartsWith("program Simple("));
  EXPECT_THAT(run_ok({"explain", "Simple", "--dot"}).out, StartsWith("digraph"));
  EXPECT_THAT(run_ok({"explain", "Simple", "--stage", "order"}).out, HasSubstr("reverse: 2 1"));
  for (const char* stage : {"graph", "dot", "accumulation", "optimised", "passes", "costs", "peak"})
    EXPECT_NE(run_ok({"explain", example("rosenbrock.loipe"), "--stage", stage}).out, "") << stage;
}

TEST(Contract, PassesAreShownAndLeftOut) {
  const std::string passes = run_ok({"explain", "Encoder", "--scale", "2", "--stage", "passes"}).out;
  for (const Json& pass : run_json({"info", "--json"})["passes"]) {
    const std::string name = pass["name"];
    if (name == "example_vectors") continue;  // of batches only
    EXPECT_THAT(passes, HasSubstr(name));
    run_ok({"explain", "Encoder", "--scale", "2", "--dump", name});
    const std::string others =
        run_ok({"explain", "Encoder", "--scale", "2", "--stage", "passes", "--disable", name}).out;
    EXPECT_THAT(others, Not(HasSubstr(name + " ")));
    run_ok({"bench", "Perceptron", "--orders", "reverse", "--repetitions", "1", "--disable", name});
  }
  EXPECT_THAT(run_ok({"explain", "Encoder", "--scale", "2", "--dump", "fusion"}).out, HasSubstr("loop over"));
  EXPECT_THAT(run_ok({"explain", "Simple", "--dump", "schedule"}).out, StartsWith("program"));
}

TEST(Contract, VersionAndHelp) {
  EXPECT_THAT(run_ok({"--version"}).out, StartsWith("loipe 0."));
  EXPECT_THAT(run_ok({"--help"}).out, HasSubstr("loipe bench transformer"));
  for (const char* command : {"tasks", "ops", "info", "count", "jacobian", "bench", "check", "explain"}) {
    const Outcome result = run_ok({command, "--help"});
    EXPECT_THAT(result.out, HasSubstr("Examples:\n  loipe " + std::string(command)));
    EXPECT_EQ(result.err, "");
  }
}

TEST(Contract, DryRun) {
  const Json json = run_json({"jacobian", "Encoder", "--scale", "16", "--dry-run", "--order", "alphagrad"});
  EXPECT_EQ(json["multiplications"]["published"], 189559296);
  EXPECT_GT(json["peak_bytes"], 4'700'000);
  EXPECT_EQ(json["results"].size(), 17U);
  EXPECT_THAT(run_ok({"jacobian", "Simple", "--dry-run"}).out, HasSubstr("peak bytes"));
}

TEST(Contract, InterruptEndsTheRun) {
  const Process process({"bench", "Encoder", "--scale", "16", "--orders", "forward", "--threads", "1"});
  while (process.err().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  process.signal(SIGINT);
  const Outcome result = process.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("loipe: interrupted"));
}

}  // namespace
}  // namespace loipe::test
