// SPDX-License-Identifier: Apache-2.0
#include "passes/algebraic/algebraic.h"
#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

/// The nodes in the order given, the last one returned.
std::string body(const std::vector<std::string>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    text += "  %" + std::to_string(i + 1) + " = " + nodes[i] + "\n";
  return text + "  return " + (nodes.empty() ? "%x" : "%" + std::to_string(nodes.size())) + "\n";
}

void expect(const std::string& x, const std::vector<std::string>& before,
            const std::vector<std::string>& expected) {
  expect_rewrite(algebraic, "%x: " + x, body(before), body(expected));
}

TEST(ShapeRules, MovesThatDoNothing) {
  expect("f64[2,3]", {"reshape(%x) {shape=[2,3]}"}, {});
  expect("f64[2,3]", {"transpose(%x) {permutation=[0,1]}"}, {});
  expect("f64[2,3]", {"broadcast_in_dim(%x) {dimensions=[0,1], shape=[2,3]}"}, {});
  expect("f64[2,1]", {"slice(%x) {limit=[2,1], start=[0,0], stride=[1,3]}"}, {});
  expect("f64[2,3]", {"concatenate(%x) {axis=1}"}, {});
  expect("f64[2,3]", {"reduce_sum(%x) {axes=[]}"}, {});
  expect_rewrite(algebraic, "%x: f64[2], %y: f64[]",
                 "  %1 = pad(%x, %y) {high=[0], interior=[0], low=[0]}\n  return %1\n", "  return %x\n");
  expect_unchanged(algebraic, "%x: f64[2], %y: f64[]",
                   "  %1 = pad(%x, %y) {high=[-1], interior=[0], low=[1]}\n  return %1\n");
  expect_unchanged(algebraic, "%x: f64[2,3]", body({"slice(%x) {limit=[2,3], start=[0,1]}"}));
}

TEST(ShapeRules, MovesOfMoves) {
  expect("f64[2,3]", {"reshape(%x) {shape=[6]}", "reshape(%1) {shape=[3,2]}"}, {"reshape(%x) {shape=[3,2]}"});
  expect("f64[2,3]", {"reshape(%x) {shape=[6]}", "reshape(%1) {shape=[2,3]}"}, {});
  expect("f64[2,3,4]", {"transpose(%x) {permutation=[1,2,0]}", "transpose(%1) {permutation=[2,0,1]}"}, {});
  expect("f64[2,3,4]", {"transpose(%x) {permutation=[1,2,0]}", "transpose(%1) {permutation=[1,0,2]}"},
         {"transpose(%x) {permutation=[2,1,0]}"});
  expect("f64[3]",
         {"broadcast_in_dim(%x) {dimensions=[1], shape=[2,3]}",
          "broadcast_in_dim(%1) {dimensions=[0,2], shape=[2,5,3]}"},
         {"broadcast_in_dim(%x) {dimensions=[2], shape=[2,5,3]}"});
}

TEST(ShapeRules, RowMajorOrderThatStaysIsAReshape) {
  expect("f64[2,1,3]", {"transpose(%x) {permutation=[1,0,2]}"}, {"reshape(%x) {shape=[1,2,3]}"});
  expect("f64[3]", {"broadcast_in_dim(%x) {dimensions=[0], shape=[3,1]}"}, {"reshape(%x) {shape=[3,1]}"});
  expect("f64[1,3]", {"reduce_sum(%x) {axes=[0]}"}, {"reshape(%x) {shape=[3]}"});
  expect("f64[1,3]", {"reduce_max(%x) {axes=[0]}", "broadcast_in_dim(%1) {dimensions=[1], shape=[1,3]}"}, {});
  expect_unchanged(algebraic, "%x: f64[1,3]", body({"reduce_sum(%x) {axes=[1]}"}));
}

TEST(ShapeRules, RepeatedScalarsAreBroadcastAtOnce) {
  const std::string repeated = "broadcast_in_dim(%x) {dimensions=[], shape=[2,3]}";
  for (const char* move : {"reshape(%1) {shape=[3,2]}", "transpose(%1) {permutation=[1,0]}",
                           "slice(%1) {limit=[6,4], start=[0,0], stride=[2,2]}",
                           "broadcast_in_dim(%1) {dimensions=[0,1], shape=[3,2]}"}) {
    const bool is_slice = std::string(move).starts_with("slice");
    const bool is_broadcast = std::string(move).starts_with("broadcast");
    const std::string first = is_slice       ? "broadcast_in_dim(%x) {dimensions=[], shape=[6,4]}"
                              : is_broadcast ? "broadcast_in_dim(%x) {dimensions=[], shape=[3,1]}"
                                             : repeated;
    expect("f64[]", {first, move}, {"broadcast_in_dim(%x) {dimensions=[], shape=[3,2]}"});
  }
}

}  // namespace
}  // namespace loipe::passes
