// SPDX-License-Identifier: Apache-2.0
#include "passes/algebraic/algebraic.h"
#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

std::string body(const std::string& node) { return "  %1 = " + node + "\n  return %1\n"; }

void expect(const std::string& x, const std::string& node, const std::string& expected) {
  expect_rewrite(algebraic, "%x: " + x, body(node), expected.empty() ? "  return %x\n" : body(expected));
}

TEST(IndexingRules, GatherThatOnlyMoves) {
  expect("f64[2,3]", "gather(%x) {extents=[2,3], from=\"a, b\"}", "");
  expect("f64[2,1,3]", "gather(%x) {extents=[2,3], from=\"a, 0, b\"}", "reshape(%x) {shape=[2,3]}");
  expect("f64[6]", "gather(%x) {extents=[2,3], from=\"3*a+b\"}", "reshape(%x) {shape=[2,3]}");
  expect("f64[2,3]", "gather(%x) {extents=[3,2], from=\"b, a\"}", "transpose(%x) {permutation=[1,0]}");
  expect("f64[3,4]", "gather(%x) {extents=[2,3,5,4], from=\"b, d\"}",
         "broadcast_in_dim(%x) {dimensions=[1,3], shape=[2,3,5,4]}");
}

TEST(IndexingRules, GatherThatReadsOtherwiseStays) {
  for (const char* attributes :
       {"{extents=[6], from=\"a+1\"}", "{extents=[2,3], from=\"2*a+b\"}", "{extents=[6], from=\"-1*a+5\"}",
        "{extents=[3], from=\"2*a\"}", "{extents=[7], from=\"a\"}"})
    expect_unchanged(algebraic, "%x: f64[6]", body("gather(%x) " + std::string(attributes)));
  expect_unchanged(algebraic, "%x: f64[3,3]", body("gather(%x) {extents=[3], from=\"a, a\"}"));
  // Row-major positions agree, but the second coordinate leaves its axis and reads 0.
  expect_unchanged(algebraic, "%x: f64[2,3]", body("gather(%x) {extents=[6], from=\"0, a\"}"));
  expect_unchanged(algebraic, "%x: f64[3], %i: i64[3]", body("gather(%x, %i) {extents=[3], from=\"#1[a]\"}"));
}

TEST(IndexingRules, ScatterThatFillsItsResult) {
  expect("f64[2,3]", "scatter(%x) {axes=[0,1], extents=[2,3], shape=[2,3], to=\"a, b\"}", "");
  expect("f64[2,3]", "scatter(%x) {axes=[0,1], extents=[2,3], shape=[6], to=\"3*a+b\"}",
         "reshape(%x) {shape=[6]}");
  expect("f64[3,2]", "scatter(%x) {axes=[1,0], extents=[2,3], shape=[6], to=\"a+2*b\"}",
         "reshape(%x) {shape=[6]}");
  expect("f64[3,2]", "scatter(%x) {axes=[1,0], extents=[2,3], shape=[2,3], to=\"a, b\"}",
         "transpose(%x) {permutation=[1,0]}");
  expect("f64[3,2]", "scatter(%x) {axes=[0,1], extents=[3,2], shape=[2,1,3], to=\"b, 0, a\"}",
         "scatter(%x) {axes=[0,1], extents=[3,2], shape=[2,1,3], to=\"b, 0, a\"}");
}

TEST(IndexingRules, ScatterThatLeavesGapsOrRepeatsStays) {
  for (const char* attributes :
       {"{axes=[0], extents=[3], shape=[3,3], to=\"a, a\"}", "{axes=[0], extents=[3], shape=[4], to=\"a\"}",
        "{axes=[0], extents=[3,2], shape=[3,2], to=\"a, b\"}",
        "{axes=[0], extents=[3], shape=[3], to=\"2*a\"}"})
    expect_unchanged(algebraic, "%x: f64[3]", body("scatter(%x) " + std::string(attributes)));
}

TEST(IndexingRules, ScatterOntoABase) {
  expect_rewrite(algebraic, "%x: f64[3], %y: f64[3]",
                 body("scatter(%x, %y) {axes=[0], base=1, extents=[3], shape=[3], to=\"a\"}"),
                 body("add(%y, %x)"));
  expect_rewrite(algebraic, "%x: f64[3], %i: i64[3]",
                 "  %c1 = constant {value=f64[](0.0)}\n"
                 "  %1 = broadcast_in_dim(%c1) {dimensions=[], shape=[4]}\n"
                 "  %2 = scatter(%x, %1, %i) {axes=[0], base=1, extents=[3], shape=[4], to=\"#2[a]\"}\n"
                 "  return %2\n",
                 body("scatter(%x, %i) {axes=[0], extents=[3], shape=[4], to=\"#1[a]\"}"));
}

}  // namespace
}  // namespace loipe::passes
