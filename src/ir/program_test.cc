// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"

namespace loipe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const TensorType kVector{DType::f64, {3}};

TEST(Program, NumbersVerticesWithoutArgumentsAndConstants) {
  Builder b("f");
  const Value x = b.argument("x", kVector);
  const Value doubled = b.emit("mul", {x, b.scalar(2, DType::f64)});
  const Value y = b.argument("y", kVector);
  const Value sum = b.emit("add", {doubled, y});
  const Program program = b.finish({sum});
  EXPECT_THAT(program.vertex_numbers(), ElementsAre(0, 0, 1, 0, 2));
  EXPECT_THAT(program.operands(sum), ElementsAre(doubled, y));
  EXPECT_THAT(program.outputs(), ElementsAre(sum));
  EXPECT_EQ(program.type(sum), kVector);
}

TEST(Program, FindsArgumentsByName) {
  Builder b("attention");
  b.argument("query", kVector);
  b.argument("key", kVector);
  EXPECT_EQ(b.program().argument_position("key"), 1u);
  EXPECT_THAT(
      [&] { b.program().argument_position("qury"); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("'attention' has no argument 'qury'"),
                                     HasSubstr("did you mean 'query'?"), HasSubstr("are query, key"))));
}

TEST(Program, RefusesTwoArgumentsOfOneName) {
  Builder b;
  b.argument("x", kVector);
  EXPECT_THAT([&] { b.argument("x", kVector); },
              ThrowsMessage<UserError>(HasSubstr("two arguments are named 'x'")));
  EXPECT_EQ(b.program().arguments().size(), 1u);
}

TEST(Program, OperandsMustComeFirst) {
  Program program;
  const Value later{5};
  EXPECT_THAT([&] { program.add_node(find_op("neg"), {&later, 1}, {}, kVector); },
              ThrowsMessage<InternalError>(HasSubstr("operand of 'neg' is not yet defined")));
}

}  // namespace
}  // namespace loipe
