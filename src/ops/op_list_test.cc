// SPDX-License-Identifier: Apache-2.0
#include "ops/op_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/emit.h"
#include "ops/test_call.h"
#include "ops/uniform_constant.h"

namespace loipe::ops {
namespace {

using loipe::testing::infer_error;
using ::testing::HasSubstr;

TEST(OpList, IsSortedWithoutRepetition) {
  const auto ops = all_ops();
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end(),
                             [](const OpDef* a, const OpDef* b) { return a->name.value <= b->name.value; }));
}

TEST(OpList, NamesAreThoseOfTheRecords) {
#define LOIPE_OP(id) EXPECT_EQ(op_##id.name.value, #id);
#include "ops/op_list.def"
#undef LOIPE_OP
}

TEST(OpList, FindsEveryOpByName) {
  for (const OpDef* op : all_ops()) EXPECT_EQ(&find_op(op->name), op);
  EXPECT_EQ(&argument_op(), &op_argument);
  EXPECT_EQ(&constant_op(), &op_constant);
}

TEST(OpList, SuggestsTheNearestName) {
  try {
    find_op("reduce_summ");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown op 'reduce_summ' (did you mean 'reduce_sum'?)"));
  }
}

TEST(ShapeChecks, MistypedAttributeIsRefusedWithASuggestion) {
  EXPECT_THAT(infer_error("reduce_sum", {{DType::f64, {2}}}, {{"axis", Integers{0}}}),
              HasSubstr("it has no attribute 'axis' (did you mean 'axes'?); its attributes are axes"));
  EXPECT_THAT(infer_error("tanh", {{DType::f64, {2}}}, {{"y", std::int64_t{2}}}),
              HasSubstr("tanh(f64[2]): it has no attribute 'y'; it has none"));
}

TEST(Emit, ANumberIsAScalarConstantOfTheOtherOperandsDtype) {
  Builder b;
  const Value x = b.argument("x", {DType::f32, {3}});
  const Value y = sub(b, 1, x);
  EXPECT_EQ(to_string(b.type(y)), "f32[3]");
  EXPECT_EQ(to_string(b.type(b.program().operands(y)[0])), "f32[]");
}

TEST(Emit, FullIsABroadcastConstant) {
  Builder b;
  EXPECT_EQ(to_string(b.type(full(b, {2, 3}, 4, DType::i32))), "i32[2,3]");
  EXPECT_EQ(&b.program().op(full(b, {}, 4, DType::i32)), &op_constant);
}

TEST(UniformConstant, SeesThroughOpsThatOnlyMoveEntries) {
  Builder b;
  const Value twos = full(b, {2, 3}, 2, DType::f64);
  EXPECT_EQ(uniform_constant(b.program(), transpose(b, twos, {1, 0})), 2.0);
  EXPECT_EQ(uniform_constant(b.program(), reshape(b, twos, {6})), 2.0);
  EXPECT_EQ(uniform_constant(b.program(), b.constant(Tensor::of<double>({2}, {3, 3}))), 3.0);
  EXPECT_EQ(uniform_constant(b.program(), b.constant(Tensor::of<double>({2}, {3, 4}))), std::nullopt);
  EXPECT_EQ(uniform_constant(b.program(), b.argument("x", {DType::f64, {}})), std::nullopt);
}

}  // namespace
}  // namespace loipe::ops
