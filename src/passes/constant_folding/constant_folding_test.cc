// SPDX-License-Identifier: Apache-2.0
#include "passes/constant_folding/constant_folding.h"

#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

TEST(ConstantFolding, EvaluatesChainsOfConstants) {
  expect_rewrite(constant_folding, "%x: f64[]",
                 "  %c1 = constant {value=f64[](3.0)}\n  %c2 = constant {value=f64[](0.5)}\n"
                 "  %1 = mul(%c1, %c2)\n  %2 = sub(%1, %c1)\n  %3 = add(%x, %2)\n  return %3\n",
                 "  %c1 = constant {value=f64[](-1.5)}\n  %1 = add(%x, %c1)\n  return %1\n");
}

TEST(ConstantFolding, NanAndInfinitiesAreValues) {
  expect_rewrite(
      constant_folding, "",
      "  %c1 = constant {value=f32[](0.0)}\n  %1 = div(%c1, %c1)\n  %2 = log(%c1)\n  return %1, %2\n",
      // The quotient 0/0 of the reference is -NaN on x86, which has one text.
      "  %c1 = constant {value=f32[](nan)}\n  %c2 = constant {value=f32[](-inf)}\n  return %c1, %c2\n");
}

TEST(ConstantFolding, KeepsDtypes) {
  expect_rewrite(constant_folding, "",
                 "  %c1 = constant {value=i32[2](7,-7)}\n  %c2 = constant {value=i32[](2)}\n"
                 "  %1 = div(%c1, %c2)\n  %2 = lt(%c1, %c2)\n"
                 "  %3 = convert_element_type(%c1) {dtype=f32}\n  return %1, %2, %3\n",
                 "  %c1 = constant {value=i32[2](3,-3)}\n  %c2 = constant {value=bool[2](0,1)}\n"
                 "  %c3 = constant {value=f32[2](7.0,-7.0)}\n  return %c1, %c2, %c3\n");
}

TEST(ConstantFolding, LeavesWhatDependsOnArguments) {
  expect_unchanged(constant_folding, "%x: f64[2]",
                   "  %c1 = constant {value=f64[](0.0)}\n  %1 = mul(%x, %c1)\n  %2 = sub(%x, %x)\n"
                   "  %3 = add(%1, %2)\n  return %3, %c1\n");
}

TEST(ConstantFolding, CompactNodesStayButAreKnown) {
  expect_unchanged(constant_folding, "",
                   "  %c1 = constant {value=f64[](2.0)}\n"
                   "  %1 = broadcast_in_dim(%c1) {dimensions=[], shape=[3]}\n"
                   "  %2 = iota {axis=0, dtype=i64, shape=[3]}\n  return %1, %2\n");
  expect_rewrite(constant_folding, "",
                 "  %c1 = constant {value=f64[](2.0)}\n"
                 "  %1 = broadcast_in_dim(%c1) {dimensions=[], shape=[3]}\n"
                 "  %2 = iota {axis=0, dtype=f64, shape=[3]}\n  %3 = mul(%1, %2)\n"
                 "  %4 = mul(%1, %c1)\n  return %3, %4\n",
                 "  %c1 = constant {value=f64[3](0.0,2.0,4.0)}\n  %c2 = constant {value=f64[](4.0)}\n"
                 "  %1 = broadcast_in_dim(%c2) {dimensions=[], shape=[3]}\n  return %c1, %1\n");
}

TEST(ConstantFolding, LeavesLargeResultsAndLargeWork) {
  expect_unchanged(constant_folding, "",
                   "  %c1 = constant {value=f64[](2.0)}\n"
                   "  %1 = broadcast_in_dim(%c1) {dimensions=[], shape=[5000]}\n  %2 = exp(%1)\n"
                   "  %3 = reduce_sum(%1) {axes=[0]}\n  return %2, %3\n");
  expect_unchanged(constant_folding, "",
                   "  %1 = iota {axis=0, dtype=f64, shape=[4000]}\n"
                   "  %2 = einsum(%1, %1, %1) {spec=\"a,b,c->\"}\n  return %2\n");
  expect_unchanged(constant_folding, "",
                   "  %c1 = constant {value=f64[](2.0)}\n"
                   "  %1 = scatter(%c1) {axes=[], extents=[4000000], shape=[], to=\"\"}\n  return %1\n");
}

}  // namespace
}  // namespace loipe::passes
