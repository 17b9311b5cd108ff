// SPDX-License-Identifier: Apache-2.0
#include "passes/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/builder.h"
#include "ir/printer.h"

namespace loipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// exp(x) twice, and a node without use.
Program sample() {
  Builder b("f");
  const Value x = b.argument("x", {DType::f64, {2}});
  const Value first = b.emit("exp", {x}), second = b.emit("exp", {x});
  b.emit("sin", {x});
  return b.finish({b.emit("add", {first, second})});
}

TEST(Passes, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const Pass& pass : all_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
  }
}

TEST(Runner, ReportsDumpsAndVerifiesEachPass) {
  std::vector<std::string> dumped;
  std::vector<std::size_t> sizes;
  PassOptions options;
  options.verify_each = true;
  options.dump = [&](std::string_view pass, const Program& program) {
    dumped.emplace_back(pass);
    sizes.push_back(program.size());
  };
  std::vector<PassReport> reports;
  const Program result = run_passes(sample(), options, &reports);
  EXPECT_EQ(result.size(), 3u) << program_to_text(result);
  ASSERT_EQ(reports.size(), all_passes().size());
  ASSERT_EQ(dumped.size(), reports.size());
  std::size_t before = 5;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].name, all_passes()[i].name);
    EXPECT_EQ(dumped[i], reports[i].name);
    EXPECT_EQ(reports[i].nodes_before, before);
    EXPECT_EQ(reports[i].nodes_after, sizes[i]);
    EXPECT_GE(reports[i].seconds, 0);
    before = sizes[i];
  }
}

/// Chains of every kind that a pass looks through, long enough that anything
/// quadratic or recursive would show.
TEST(Runner, LongProgramsTakeLinearTime) {
  Builder b("long");
  const TensorType scalar{DType::f64, {}};
  const Value x = b.argument("x", scalar), y = b.argument("y", scalar), one = b.scalar(1, DType::f64);
  Value sum = x, constant = one, moved = x;
  for (int i = 0; i < 20000; ++i) {
    sum = b.emit("add", {b.emit("div", {sum, y}), b.emit("neg", {b.emit("mul", {sum, one})})});
    constant = b.emit("mul", {b.emit("add", {constant, one}), b.scalar(0.5, DType::f64)});
    moved = b.emit("reshape", {moved}, {{"shape", Integers(i % 2 ? 0 : 1, 1)}});
  }
  std::vector<PassReport> reports;
  const Program result = run_passes(b.finish({sum, constant, moved}), {}, &reports);
  // Both arguments, 1 (also the folded constant), 1/y, and x_{k+1} = x_k * (1/y) - x_k.
  EXPECT_EQ(result.size(), 2u + 2u + 40000u);
  for (const PassReport& report : reports)
    RecordProperty(std::string(report.name), std::to_string(report.seconds));
}

TEST(Runner, LeavesOutWhatIsDisabled) {
  PassOptions options;
  options.disabled = {"dead_code"};
  std::vector<PassReport> reports;
  EXPECT_EQ(run_passes(sample(), options, &reports).size(), 4u);
  EXPECT_EQ(reports.size(), all_passes().size() - 1);
  for (const Pass& pass : all_passes()) options.disabled.emplace_back(pass.name);
  EXPECT_EQ(program_to_text(run_passes(sample(), options)), program_to_text(sample()));
}

TEST(Runner, SuggestsTheNearestName) {
  PassOptions options;
  options.disabled = {"dead_cod"};
  EXPECT_THAT([&] { run_passes(sample(), options); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("there is no pass 'dead_cod' to disable"),
                                             HasSubstr("did you mean 'dead_code'?"),
                                             HasSubstr("common_subexpressions"))));
}

TEST(Runner, NamesThePassThatBrokeTheProgram) {
  constexpr Pass kBroken{"broken", "gives a node the wrong type", [](const Program&) {
                           Program program("f");
                           const Value x = program.add_argument("x", {DType::f64, {2}});
                           program.add_node(find_op("exp"), {&x, 1}, {}, {DType::f64, {3}});
                           return program;
                         }};
  PassOptions options;
  options.verify_each = true;
  EXPECT_THAT([&] { run_passes(sample(), {&kBroken, 1}, options); },
              ThrowsMessage<Error>(AllOf(HasSubstr("after pass 'broken': internal error: "),
                                         HasSubstr("has type f64[3], but its op gives f64[2]"))));
  options.verify_each = false;
  EXPECT_EQ(run_passes(sample(), {&kBroken, 1}, options).size(), 2u);
}

}  // namespace
}  // namespace loipe
