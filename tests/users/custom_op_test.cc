// SPDX-License-Identifier: Apache-2.0
// User-defined ops: every way to give a derivative, in every order, twice.
#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "every_way.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace loipe::testing {
namespace {

using Arguments = std::span<const Traced>;
using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// sin(x) y of two tensors of one shape, without a derivative.
CustomOpDefinition sine_times(std::string name) {
  CustomOpDefinition definition;
  definition.name = std::move(name);
  definition.operand_count = 2;
  definition.type = [](std::span<const TensorType> types) { return types[0]; };
  definition.evaluate = [](std::span<const Tensor* const> operands) {
    Tensor result(operands[0]->type());
    for (std::int64_t i = 0; i < result.element_count(); ++i)
      result.set(i, std::sin(operands[0]->at(i)) * operands[1]->at(i));
    return result;
  };
  return definition;
}

CustomOp by_partials() {
  CustomOpDefinition definition = sine_times("sine_times.partials");
  definition.partials = [](Arguments v) { return std::vector{cos(v[0]) * v[1], sin(v[0])}; };
  return CustomOp(std::move(definition));
}

CustomOp by_jvp() {
  CustomOpDefinition definition = sine_times("sine_times.jvp");
  definition.jvp = [](Arguments v) { return std::vector{cos(v[0]) * v[1] * v[3] + sin(v[0]) * v[4]}; };
  return CustomOp(std::move(definition));
}

CustomOp by_vjp() {
  CustomOpDefinition definition = sine_times("sine_times.vjp");
  definition.vjp = [](Arguments v) { return std::vector{cos(v[0]) * v[1] * v[3], sin(v[0]) * v[3]}; };
  return CustomOp(std::move(definition));
}

const std::vector<CustomOp>& all_kinds() {
  static const std::vector<CustomOp> kinds{by_partials(), by_jvp(), by_vjp()};
  return kinds;
}

TEST(Users, U68_AUserDefinedOpHasEveryDerivative) {
  for (const CustomOp& op : all_kinds()) {
    SCOPED_TRACE(op.name());
    const auto f = [&](Arguments x) { return op(x[0], x[1]); };
    const std::vector<Tensor> at{Tensor::scalar(1.0), Tensor::scalar(2.0)};
    check_in_every_way(f, at, [](const Derivatives& d) {
      expect_entries(d.value, {2 * std::sin(1.0)}, 1e-15);
      expect_entries(d.by[0], {2 * std::cos(1.0)}, 1e-15);
      expect_entries(d.by[1], {std::sin(1.0)}, 1e-15);
    });
    check_second_in_every_way(f, at, 0, [](const Derivatives& d) {
      expect_entries(d.by[0], {-1.68294197}, 1e-8);
      expect_entries(d.by[1], {0.54030231}, 1e-8);
    });
    check_second_in_every_way(f, at, 1, [](const Derivatives& d) {
      expect_entries(d.by[0], {0.54030231}, 1e-8);
      expect_entries(d.by[1], {0}, 0);
    });
  }
}

TEST(Users, U68_ByThePublicHessian) {
  for (const CustomOp& op : all_kinds())
    for (const char* backend : {"reference", "jit"})
      for (const char* order : {"forward", "reverse", "markowitz"}) {
        SCOPED_TRACE(op.name() + ", " + backend + ", " + order);
        const Derivative H =
            hessian([&](auto x, auto y) { return op(x, y); },
                    {{"x", {DType::f64, {}}}, {"y", {DType::f64, {}}}}, {.order = order, .backend = backend});
        const std::vector<Tensor> blocks = H({Tensor::scalar(1.0), Tensor::scalar(2.0)}).derivatives;
        ASSERT_EQ(blocks.size(), 4u);
        const double expected[] = {-1.68294197, 0.54030231, 0.54030231, 0};
        for (std::size_t i = 0; i < 4; ++i) expect_entries(blocks[i], {expected[i]}, 1e-8);
      }
}

/// Among other ops, on tensors: the structure is that of the traced derivative, here a diagonal.
TEST(CustomOp, AmongOtherOps) {
  const Tensor x = Tensor::of<double>({2, 2}, {0.1, 0.2, 0.3, 0.4}), y = vector_of({1, 2});
  const auto body = [](const Traced& a, const Traced& b, const CustomOp* op) {
    const Traced wide = broadcast_to(b, {2, 2}), scaled = 2 * a;
    const Traced product = op != nullptr ? (*op)(scaled, wide) : sin(scaled) * wide;
    return sum(square(product), {1});
  };
  std::vector<Tensor> expected;
  check_in_every_way([&](Arguments v) { return body(v[0], v[1], nullptr); }, {x, y},
                     [&](const Derivatives& d) { expected = d.by; });
  for (const CustomOp& op : all_kinds())
    check_in_every_way([&](Arguments v) { return body(v[0], v[1], &op); }, {x, y},
                       [&](const Derivatives& d) {
                         for (std::size_t k = 0; k < 2; ++k)
                           expect_entries(d.by[k], entries(expected[k]), 1e-13);
                       });
}

/// [n] -> [n], y_i = x_i (x . x): a dense Jacobian, 2 x_i x_j + (x . x) (i == j).
CustomOpDefinition cubic(std::string name) {
  CustomOpDefinition definition;
  definition.name = std::move(name);
  definition.type = [](std::span<const TensorType> types) { return types[0]; };
  definition.evaluate = [](std::span<const Tensor* const> operands) {
    Tensor result(operands[0]->type());
    double square = 0;
    for (std::int64_t i = 0; i < result.element_count(); ++i) square += std::pow(operands[0]->at(i), 2);
    for (std::int64_t i = 0; i < result.element_count(); ++i) result.set(i, operands[0]->at(i) * square);
    return result;
  };
  return definition;
}

TEST(CustomOp, DenseBlocksAndLinearMaps) {
  CustomOpDefinition blocks = cubic("cubic.blocks"), jvp = cubic("cubic.jvp"), vjp = cubic("cubic.vjp");
  blocks.blocks = [](Arguments v) {
    const std::int64_t n = v[0].shape()[0];
    const Traced diagonal = convert(iota({n, n}, 0, DType::i64) == iota({n, n}, 1, DType::i64), v[0].dtype());
    return std::vector{2 * reshape(v[0], {n, 1}) * reshape(v[0], {1, n}) + dot(v[0], v[0]) * diagonal};
  };
  jvp.jvp = [](Arguments v) { return std::vector{2 * v[0] * dot(v[0], v[2]) + dot(v[0], v[0]) * v[2]}; };
  vjp.vjp = jvp.jvp;  // the Jacobian is symmetric
  const std::vector<CustomOp> kinds{CustomOp(blocks), CustomOp(jvp), CustomOp(vjp)};
  const std::vector<Tensor> x{vector_of({1, -2, 3})};
  const std::vector<double> expected{16, -4, 6, -4, 22, -12, 6, -12, 32};
  for (const CustomOp& op : kinds) {
    SCOPED_TRACE(op.name());
    check_in_every_way([&](Arguments v) { return op(v[0]); }, x,
                       [&](const Derivatives& d) { expect_entries(d.by[0], expected, 1e-14); });
    // d^2 y_i / dx_j dx_k = 2 (x_k (i == j) + x_j (i == k) + x_i (j == k))
    check_second_in_every_way(
        [&](Arguments v) { return op(v[0]); }, x, 0,
        [&](const Derivatives& d) {
          for (std::int64_t i = 0; i < 3; ++i)
            for (std::int64_t j = 0; j < 3; ++j)
              for (std::int64_t k = 0; k < 3; ++k)
                EXPECT_NEAR(d.by[0].at(9 * i + 3 * j + k),
                            2 * ((i == j) * x[0].at(k) + (i == k) * x[0].at(j) + (j == k) * x[0].at(i)),
                            1e-13);
        });
  }
}

/// A VJP through an op with an implicit Jacobian, and an integer operand.
TEST(CustomOp, DirectionsThroughImplicitOps) {
  CustomOpDefinition running;
  running.name = "running_weighted";
  running.operand_count = 2;
  running.type = [](std::span<const TensorType> types) { return types[1]; };
  running.evaluate = [](std::span<const Tensor* const> operands) {
    Tensor result(operands[1]->type());
    double so_far = 0;
    for (std::int64_t i = 0; i < result.element_count(); ++i)
      result.set(i, so_far += operands[0]->at(i) * operands[1]->at(i));
    return result;
  };
  running.vjp = [](Arguments v) {
    return std::vector{convert(v[0], DType::f64) * cumsum(v[3], -1, {.reverse = true})};
  };
  const CustomOp op(running);
  check_in_every_way([&](Arguments x) { return op(x[0], square(x[1])); },
                     {Tensor::of<std::int64_t>({3}, {1, 2, 3}), vector_of({1, 2, 3})},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {1, 9, 36}, 0);
                       expect_entries(d.by[0], {2, 0, 0, 2, 8, 0, 2, 8, 18}, 0);
                     });
}

TEST(CustomOp, ProgramsPrintAndParse) {
  const CustomOp& op = all_kinds()[0];
  const Program program =
      traced([&](Arguments x) { return op(x[0], x[1]); }, {Tensor::scalar(1.0), Tensor::scalar(2.0)});
  const std::string text = program_to_text(program);
  EXPECT_THAT(text, HasSubstr("%1 = custom(%x0, %x1) {op=\"sine_times.partials\"} : f64[]"));
  EXPECT_EQ(program_to_text(program_from_text(text)), text);
  std::string other = text;
  other.replace(other.find("partials"), 8, "partial");
  EXPECT_THAT(message_of([&] { program_from_text(other); }),
              HasSubstr("no custom op 'sine_times.partial' is defined in this process (did you mean "
                        "'sine_times.partials'?); make its CustomOp before"));
}

TEST(CustomOp, MistakesAreNamed) {
  EXPECT_THAT(message_of([] { CustomOp(sine_times("")); }), HasSubstr("needs a name"));
  CustomOpDefinition incomplete = sine_times("incomplete");
  incomplete.evaluate = nullptr;
  EXPECT_THAT(message_of([&] { CustomOp{incomplete}; }), HasSubstr("custom op 'incomplete' lacks evaluate"));
  CustomOpDefinition twice = sine_times("twice");
  twice.jvp = twice.vjp = [](Arguments v) { return std::vector{v[0]}; };
  EXPECT_THAT(message_of([&] { CustomOp{twice}; }), HasSubstr("custom op 'twice' has 2 derivatives"));
  const CustomOp plain(sine_times("plain"));
  EXPECT_THAT(message_of([] { CustomOp(sine_times("plain")); }), HasSubstr("'plain' is already defined"));
  const auto jacobian_of = [](const CustomOp& op) {
    jacobian([&](auto x, auto y) { return op(x, y); }, {{"x", {DType::f64, {2}}}, {"y", {DType::f64, {2}}}});
  };
  EXPECT_THAT(message_of([&] { jacobian_of(plain); }),
              HasSubstr("custom op 'plain' has no derivative: give"));
  EXPECT_THROW(jacobian_of(plain), Unsupported);
  EXPECT_THAT(message_of([&] { jacobian([&](auto x) { return plain(x); }, {{"x", {DType::f64, {2}}}}); }),
              HasSubstr("custom op 'plain' has 2 operands, got 1"));

  CustomOpDefinition nonlinear = sine_times("nonlinear");
  nonlinear.jvp = [](Arguments v) { return std::vector{v[3] * v[3] + v[4]}; };
  const CustomOp squares(nonlinear);
  EXPECT_THAT(message_of([&] { jacobian_of(squares); }),
              HasSubstr("custom op 'nonlinear': the derivative is not linear"));
  CustomOpDefinition few = sine_times("few");
  few.vjp = [](Arguments v) { return std::vector{v[3]}; };
  const CustomOp one(few);
  EXPECT_THAT(message_of([&] { jacobian_of(one); }), HasSubstr("gives 1 tensors, expected 2"));
  CustomOpDefinition wrong = sine_times("wrong_type");
  wrong.evaluate = [](std::span<const Tensor* const>) { return Tensor::scalar(1.0); };
  wrong.partials = [](Arguments v) { return std::vector{v[0], v[1]}; };
  const CustomOp wrong_type(wrong);
  const Jacobian J = jacobian([&](auto x, auto y) { return wrong_type(x, y); },
                              {{"x", {DType::f64, {2}}}, {"y", {DType::f64, {2}}}});
  EXPECT_THAT(message_of([&] { J({vector_of({1, 2}), vector_of({1, 2})}); }),
              HasSubstr("custom op 'wrong_type' evaluates to f64[], but its type function says f64[2]"));
}

/// Compiled once, run by several threads and over a batch.
TEST(CustomOp, RunsInThreadsAndBatches) {
  const CustomOp& op = all_kinds()[1];
  const Jacobian J = jacobian([&](auto x, auto y) { return op(x, y); },
                              {{"x", {DType::f64, {}}}, {"y", {DType::f64, {}}}}, {.batch = 8});
  std::vector<std::thread> threads;
  std::vector<double> results(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        results[t] =
            J({Tensor::scalar(0.25 * static_cast<double>(t)), Tensor::scalar(2.0)}).blocks[0][0].at(0);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < 4; ++t)
    EXPECT_NEAR(results[t], 2 * std::cos(0.25 * static_cast<double>(t)), 1e-15);
  const JacobianResult batch = J.run_batch({vector_of({0, 1, 2}), vector_of({1, 2, 3})});
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(batch.blocks[0][1].at(i), std::sin(static_cast<double>(i)), 1e-15);
}

}  // namespace
}  // namespace loipe::testing
