// SPDX-License-Identifier: Apache-2.0
#include "ir/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"

namespace loipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

const TensorType kVector{DType::f64, {3}};
const TensorType kScalar{DType::f64, {}};

Value add_node(Program& program, const char* op, std::vector<Value> operands, const TensorType& type) {
  return program.add_node(find_op(op), operands, {}, type);
}

void expect_invalid(const Program& program, const std::string& part) {
  EXPECT_THAT([&] { verify(program); },
              ThrowsMessage<InternalError>(AllOf(HasSubstr("program 'f' is invalid: "), HasSubstr(part))));
}

TEST(Verifier, AcceptsWhatTheBuilderBuilds) {
  Builder b("f");
  const Value x = b.argument("x", kVector);
  const Value y = b.emit("mul", {x, b.scalar(2, DType::f64)});
  verify(b.finish({y, x}));
  verify(Program());
}

TEST(Verifier, ShowsTheLinesAroundAWrongType) {
  Program program("f");
  const Value x = program.add_argument("x", kVector);
  Value last = x;
  for (int i = 1; i <= 9; ++i) last = add_node(program, "neg", {last}, i == 5 ? kScalar : kVector);
  const std::string expected = R"(node %5 has type f64[], but its op gives f64[3]
    %3 = neg(%2) : f64[3]
    %4 = neg(%3) : f64[3]
  > %5 = neg(%4) : f64[]
    %6 = neg(%5) : f64[3]
    %7 = neg(%6) : f64[3]
)";
  expect_invalid(program, expected);
  EXPECT_THAT([&] { verify(program); }, ThrowsMessage<InternalError>(Not(HasSubstr("%8"))));
}

TEST(Verifier, ReportsWhatTheOpRefuses) {
  Program program("f");
  const Value x = program.add_argument("x", kVector);
  add_node(program, "add", {x}, kVector);
  expect_invalid(program, "node %1 has no type: add(f64[3]): expected 2 operands, got 1");
}

TEST(Verifier, RefusesUnlistedArguments) {
  Program program("f");
  program.add_argument("x", kVector);
  program.add_node(argument_op(), {}, {}, kVector);
  expect_invalid(program, "is an argument that the program does not list");
}

TEST(Verifier, RefusesAConstantWithoutValue) {
  Program program("f");
  program.add_node(constant_op(), {}, {}, kScalar);
  expect_invalid(program, "attribute 'value' is missing");
}

TEST(Verifier, RefusesAConstantOfAnotherType) {
  Program program("f");
  program.add_node(constant_op(), {}, {{"value", std::make_shared<const Tensor>(Tensor::scalar(1.0f))}},
                   kScalar);
  expect_invalid(program, "node %c1 has type f64[], but its op gives f32[]");
}

TEST(Verifier, RefusesOutputsThatDoNotExist) {
  Program program("f");
  program.add_argument("x", kVector);
  program.set_outputs({Value{3}});
  expect_invalid(program, "output 3 is not one of its 1 nodes");
}

TEST(Verifier, CutsLongLines) {
  Program program("f");
  const Value x = program.add_argument("x", kVector);
  program.add_node(constant_op(), {},
                   {{"value", std::make_shared<const Tensor>(TensorType{DType::f64, {10'000}})}},
                   {DType::f64, {10'000}});
  add_node(program, "neg", {x}, kScalar);
  try {
    verify(program);
    FAIL() << "accepted";
  } catch (const InternalError& error) {
    EXPECT_LT(std::string(error.what()).size(), 600u);
  }
}

}  // namespace
}  // namespace loipe
