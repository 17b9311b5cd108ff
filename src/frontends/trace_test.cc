// SPDX-License-Identifier: Apache-2.0
#include "frontends/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "ir/interpreter.h"
#include "ir/printer.h"

namespace loipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const TensorType kScalar{DType::f64, {}};
const TensorType kVector{DType::f64, {3}};
const TensorType kMatrix{DType::f64, {2, 3}};

template <std::size_t count, class Function>
Program trace_of(const std::array<TensorType, count>& types, Function function) {
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < count; ++i) arguments.push_back({"x" + std::to_string(i), types[i]});
  return trace("main", arguments, detail::pack_function<count>(function));
}

template <class Exception, class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

template <std::size_t count, class Function>
std::string trace_error(const std::array<TensorType, count>& types, Function function) {
  return message_of<UserError>([&] { trace_of(types, function); });
}

/// The lines of the vertices, without types.
std::vector<std::string> nodes_of(const Program& program) {
  std::vector<std::string> lines;
  const ValueNames names(program);
  const std::vector<int> vertices = program.vertex_numbers();
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (vertices[i] == 0) continue;
    const std::string line = node_to_text(program, names, Value{i});
    lines.push_back(line.substr(0, line.find(" : ")));
  }
  return lines;
}

// Programs ------------------------------------------------------------------

TEST(Trace, RecordsOneNodePerOperationInOrder) {
  const Program program = trace_of(std::array{kVector, kVector}, [](const Traced& x, const Traced& y) {
    const Traced product = x * y;
    return sin(product) + 1;
  });
  EXPECT_THAT(nodes_of(program),
              testing::ElementsAre("%1 = mul(%x0, %x1)", "%2 = sin(%1)", "%3 = add(%2, %c1)"));
  EXPECT_EQ(program.type(program.outputs()[0]), kVector);
}

TEST(Trace, ProgramHasTheNamesOfTheArguments) {
  const std::vector<Argument> arguments{{"left", kScalar}, {"right", kVector}};
  const Program program =
      trace("product", arguments, detail::pack_function<2>([](auto x, auto y) { return x * y; }));
  EXPECT_EQ(program.name(), "product");
  EXPECT_EQ(program.argument_position("right"), 1U);
}

TEST(Trace, OutputsMayBeArgumentsConstantsAndRepeated) {
  const Program program = trace_of(std::array{kScalar}, [](const Traced& x) {
    const Traced y = exp(x);
    return std::vector{x, y, constant(Tensor::scalar(2.5)), y};
  });
  const Tensor input = Tensor::scalar(1.0);
  const std::vector<Tensor> outputs = evaluate(program, {&input, 1});
  ASSERT_EQ(outputs.size(), 4U);
  EXPECT_EQ(outputs[0].at(0), 1.0);
  EXPECT_EQ(outputs[1].at(0), std::exp(1.0));
  EXPECT_EQ(outputs[2].at(0), 2.5);
  EXPECT_EQ(outputs[3], outputs[1]);
}

TEST(Trace, ResultsOfEveryKind) {
  const auto count = [](auto function) { return trace_of(std::array{kScalar}, function).outputs().size(); };
  EXPECT_EQ(count([](const Traced& x) { return x; }), 1U);
  EXPECT_EQ(count([](const Traced& x) { return std::pair(x, x); }), 2U);
  EXPECT_EQ(count([](const Traced& x) { return std::tuple(x, x, x); }), 3U);
  EXPECT_EQ(count([](const Traced& x) { return std::array{x, x}; }), 2U);
  EXPECT_EQ(count([](const Traced& x) { return std::vector<Traced>(4, x); }), 4U);
  EXPECT_EQ(count([](const Traced& x) { return std::tuple(x, std::vector{x, x}); }), 3U);
  EXPECT_EQ(count([](const Traced&) { return std::vector<Traced>(); }), 0U);
}

TEST(Trace, AMovedValueIsStillThere) {
  const Program program = trace_of(std::array{kScalar}, [](Traced x) {
    const Traced y = std::move(x);
    return x * y;
  });
  EXPECT_THAT(nodes_of(program), testing::ElementsAre("%1 = mul(%x0, %x0)"));
}

TEST(Trace, NestedTracesKeepTheirConstantsApart) {
  const Program outer = trace_of(std::array{kScalar}, [](const Traced& x) {
    const Program inner =
        trace_of(std::array{kScalar}, [](const Traced& y) { return y * full({}, 3, DType::f64); });
    EXPECT_EQ(inner.size(), 3U);
    return x + full({}, 4, DType::f64);
  });
  EXPECT_EQ(outer.size(), 3U);
}

// Mistakes ------------------------------------------------------------------

TEST(TraceErrors, AValueOfAnotherTrace) {
  const std::string message = message_of<UserError>([] {
    const std::vector<Argument> arguments{{"x", kScalar}};
    trace("outer", arguments, detail::pack_function<1>([&](const Traced& x) {
            trace("inner", arguments, detail::pack_function<1>([&](const Traced& y) { return x * y; }));
            return x;
          }));
  });
  EXPECT_THAT(message, AllOf(HasSubstr("'mul'"), HasSubstr("'outer'"), HasSubstr("'inner'")));
}

TEST(TraceErrors, AResultOfAnotherTrace) {
  EXPECT_THAT(trace_error(std::array{kScalar},
                          [](const Traced& x) {
                            trace_of(std::array{kScalar}, [&](const Traced&) { return x; });
                            return x;
                          }),
              HasSubstr("the result mixes values of two traces"));
}

TEST(TraceErrors, AValueThatOutlivesItsTrace) {
  std::optional<Traced> kept;
  trace_of(std::array{kScalar}, [&](const Traced& x) { return *(kept = x); });
  EXPECT_THAT(message_of<UserError>([&] { exp(*kept); }), HasSubstr("after its trace has ended"));
  EXPECT_THAT(message_of<UserError>([&] { kept->type(); }), HasSubstr("'main'"));
}

TEST(TraceErrors, AFailedTraceEndsToo) {
  std::optional<Traced> kept;
  trace_error(std::array{kScalar}, [&](const Traced& x) {
    kept = x;
    return matmul(x, x);
  });
  EXPECT_THAT(message_of<UserError>([&] { exp(*kept); }), HasSubstr("after its trace has ended"));
  EXPECT_THAT(message_of<UserError>([] { zeros({2}, DType::f64); }), HasSubstr("zeros()"));
}

TEST(TraceErrors, ADecisionByATracedValue) {
  EXPECT_THAT(trace_error(std::array{kScalar}, [](const Traced& x) { return x > 0 ? x : -x; }),
              AllOf(HasSubstr("bool[]"), HasSubstr("no value yet"), HasSubstr("loipe::select")));
}

TEST(TraceErrors, MixedDtypes) {
  const TensorType single{DType::f32, {3}};
  EXPECT_THAT(
      trace_error(std::array{kVector, single}, [](const Traced& x, const Traced& y) { return x + y; }),
      AllOf(HasSubstr("add(f64[3], f32[3])"), HasSubstr("convert()")));
  EXPECT_THAT(trace_error(std::array{kVector, single},
                          [](const Traced& x, const Traced& y) { return select(x > 0, x, y); }),
              AllOf(HasSubstr("select(bool[3], f64[3], f32[3])"), HasSubstr("convert()")));
}

TEST(TraceErrors, ShapesThatDoNotFit) {
  const TensorType four{DType::f64, {4}};
  EXPECT_THAT(trace_error(std::array{kVector, four}, [](const Traced& x, const Traced& y) { return x * y; }),
              HasSubstr("mul(f64[3], f64[4])"));
  EXPECT_THAT(trace_error(std::array{kMatrix, four}, [](const Traced& x, const Traced& y) { return x - y; }),
              AllOf(HasSubstr("sub(f64[2,3], f64[4])"), HasSubstr("do not broadcast")));
  EXPECT_THAT(trace_error(std::array{kMatrix}, [](const Traced& x) { return matmul(x, x); }),
              AllOf(HasSubstr("matmul(f64[2,3], f64[2,3])"), HasSubstr("extent 3")));
  EXPECT_THAT(trace_error(std::array{kScalar}, [](const Traced& x) { return matmul(x, x); }),
              HasSubstr("rank 1 or 2"));
  EXPECT_THAT(trace_error(std::array{kMatrix}, [](const Traced& x) { return dot(x, x); }),
              HasSubstr("two vectors"));
  EXPECT_THAT(trace_error(std::array{kMatrix}, [](const Traced& x) { return sum(x, {2}); }),
              AllOf(HasSubstr("sum(f64[2,3])"), HasSubstr("no axis 2")));
  EXPECT_THAT(trace_error(std::array{kMatrix}, [](const Traced& x) { return reshape(x, {5}); }),
              HasSubstr("reshape(f64[2,3])"));
  EXPECT_THAT(trace_error(std::array{kMatrix}, [](const Traced& x) { return broadcast_to(x, {3}); }),
              HasSubstr("broadcast_to(f64[2,3])"));
}

TEST(TraceErrors, NumbersThatTheDtypeCannotHold) {
  const TensorType integers{DType::i32, {3}}, flags{DType::boolean, {}};
  EXPECT_THAT(trace_error(std::array{integers}, [](const Traced& x) { return x * 0.5; }),
              AllOf(HasSubstr("mul"), HasSubstr("0.5"), HasSubstr("no i32"), HasSubstr("convert()")));
  EXPECT_THAT(trace_error(std::array{integers}, [](const Traced& x) { return x + 3e9; }),
              HasSubstr("no i32"));
  EXPECT_THAT(trace_error(std::array{flags}, [](const Traced& x) { return logical_and(x, 2); }),
              HasSubstr("no bool"));
  EXPECT_NO_THROW(trace_of(std::array{integers}, [](const Traced& x) { return x * 2; }));
}

TEST(TraceErrors, OtherMistakes) {
  EXPECT_THAT(trace_error(std::array{kScalar}, [](const Traced& x) { return select(x > 0, 1, 2); }),
              HasSubstr("both branches are numbers"));
  EXPECT_THAT(trace_error(std::array{TensorType{DType::i32, {3}}}, [](const Traced& x) { return mean(x); }),
              HasSubstr("mean(i32[3]): expected floating point"));
  EXPECT_THAT(trace_error(std::array{TensorType{DType::i32, {3}}}, [](const Traced& x) { return exp(x); }),
              HasSubstr("exp(i32[3])"));
  EXPECT_THAT(trace_error(std::array{kScalar}, [](const Traced&) { return concatenate({}, 0); }),
              HasSubstr("at least one part"));
  EXPECT_THAT(message_of<UserError>([] { constant(Tensor::scalar(1.0)); }),
              AllOf(HasSubstr("constant()"), HasSubstr("inside the traced function")));
  const std::vector<Argument> arguments{{"x", kScalar}};
  EXPECT_THAT(message_of<UserError>([&] {
                trace("main", arguments, detail::pack_function<2>([](auto x, auto) { return x; }));
              }),
              HasSubstr("takes 2 tensors, but 1 arguments"));
  const std::vector<Argument> twins{{"x", kScalar}, {"x", kScalar}};
  EXPECT_THAT(message_of<UserError>(
                  [&] { trace("main", twins, detail::pack_function<2>([](auto x, auto) { return x; })); }),
              HasSubstr("two arguments are named 'x'"));
}

}  // namespace
}  // namespace loipe
