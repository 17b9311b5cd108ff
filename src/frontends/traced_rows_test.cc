// SPDX-License-Identifier: Apache-2.0
// The functions of loipe/trace.h along an axis, on indices and on matrices: the ops that they
// record, and their values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "frontends/trace.h"
#include "ir/interpreter.h"

namespace loipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Result {
  std::vector<std::string> ops;
  Tensor value;
  std::vector<double> elements() const {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < value.element_count(); ++i) numbers.push_back(value.at(i));
    return numbers;
  }
};

Result run(const std::vector<Tensor>& tensors,
           const std::function<Traced(std::span<const Traced>)>& function) {
  std::vector<Argument> arguments;
  for (const Tensor& tensor : tensors)
    arguments.push_back({"x" + std::to_string(arguments.size()), tensor.type()});
  const Program program =
      trace("main", arguments, [&](std::span<const Traced> x) { return std::vector{function(x)}; });
  Result result{{}, evaluate(program, tensors)[0]};
  const std::vector<int> vertices = program.vertex_numbers();
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (vertices[i] > 0) result.ops.emplace_back(program.op(Value{i}).name.value);
  return result;
}

std::string message_of(const std::vector<Tensor>& tensors,
                       const std::function<Traced(std::span<const Traced>)>& function) {
  try {
    run(tensors, function);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

const Tensor kTable = Tensor::of<double>({2, 3}, {1, 5, 3, 4, 2, 6});
const Tensor kRow = Tensor::of<double>({3}, {-1, 0, 2});
const Tensor kIndices = Tensor::of<std::int64_t>({2}, {2, 0});

TEST(TracedRows, Activations) {
  const auto at = [](auto function) { return run({kRow}, [&](auto x) { return function(x[0]); }); };
  EXPECT_THAT(at([](auto x) { return relu(x); }).elements(), ElementsAre(0, 0, 2));
  EXPECT_THAT(at([](auto x) { return relu(x); }).ops, ElementsAre("relu"));
  EXPECT_THAT(at([](auto x) { return leaky_relu(x, 0.5); }).elements(), ElementsAre(-0.5, 0, 2));
  EXPECT_NEAR(at([](auto x) { return elu(x, 2); }).value.at(0), 2 * std::expm1(-1.0), 1e-15);
  EXPECT_NEAR(at([](auto x) { return softplus(x); }).value.at(2), std::log1p(std::exp(2.0)), 1e-15);
  EXPECT_NEAR(at([](auto x) { return silu(x); }).value.at(2), 2 / (1 + std::exp(-2.0)), 1e-15);
  EXPECT_NEAR(at([](auto x) { return gelu(x); }).value.at(2), 1 + std::erf(std::sqrt(2.0)), 1e-15);
  EXPECT_NEAR(at([](auto x) { return gelu(x, GeluForm::tanh); }).value.at(2), 1.954597694087775, 1e-15);
  EXPECT_THAT(at([](auto x) { return clamp(x, -0.5, 1); }).elements(), ElementsAre(-0.5, 0, 1));
  EXPECT_THAT(at([](auto x) { return clamp(x, 0, -x); }).elements(), ElementsAre(0, 0, -2));
}

TEST(TracedRows, AnotherAxisIsMovedThereAndBack) {
  const Result last = run({kTable}, [](auto x) { return cumsum(x[0]); });
  EXPECT_THAT(last.ops, ElementsAre("cumsum"));
  EXPECT_THAT(last.elements(), ElementsAre(1, 6, 9, 4, 6, 12));
  const Result first = run({kTable}, [](auto x) { return cumsum(x[0], 0); });
  EXPECT_THAT(first.ops, ElementsAre("transpose", "cumsum", "transpose"));
  EXPECT_THAT(first.elements(), ElementsAre(1, 5, 3, 5, 7, 9));
  EXPECT_THAT(message_of({kTable}, [](auto x) { return softmax(x[0], 2); }),
              HasSubstr("softmax(f64[2,3]) has no axis 2"));
}

TEST(TracedRows, Scans) {
  const auto of = [](auto function) {
    return run({kTable}, [&](auto x) { return function(x[0]); }).elements();
  };
  EXPECT_THAT(of([](auto x) { return cumsum(x, -1, {.reverse = true, .exclusive = true}); }),
              ElementsAre(8, 3, 0, 8, 6, 0));
  EXPECT_THAT(of([](auto x) { return cumprod(x, -1, {.exclusive = true}); }), ElementsAre(1, 1, 5, 1, 4, 8));
  EXPECT_THAT(of([](auto x) { return linear_recurrence(full({1, 1}, 2, DType::f64), x); }),
              ElementsAre(1, 7, 17, 4, 10, 26));
  EXPECT_THAT(of([](auto x) { return linear_recurrence(full({1, 1}, 2, DType::f64), x, 0, true); }),
              ElementsAre(9, 9, 15, 4, 2, 6));
}

TEST(TracedRows, SortedOrder) {
  const auto of = [](auto function) {
    return run({kTable}, [&](auto x) { return function(x[0]); }).elements();
  };
  EXPECT_THAT(of([](auto x) { return sort(x); }), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(of([](auto x) { return sort(x, 0, true); }), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(of([](auto x) { return argsort(x); }), ElementsAre(0, 2, 1, 1, 0, 2));
  EXPECT_THAT(of([](auto x) { return top_k(x, 2); }), ElementsAre(5, 3, 6, 4));
  EXPECT_THAT(of([](auto x) { return top_k_indices(x, 1); }), ElementsAre(1, 2));
  EXPECT_THAT(message_of({kTable}, [](auto x) { return top_k(x[0], 4); }), HasSubstr("k is 4, expected"));
}

TEST(TracedRows, Indices) {
  EXPECT_THAT(run({kTable, kIndices}, [](auto x) { return take(x[0], x[1], 1); }).elements(),
              ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(run({kTable, kIndices}, [](auto x) { return take(x[0], x[1]); }).elements(),
              ElementsAre(0, 0, 0, 1, 5, 3));
  const Result added = run({kTable, kIndices, Tensor::of<double>({2, 2}, {10, 20, 30, 40})},
                           [](auto x) { return scatter_add(x[0], x[1], x[2], 1); });
  EXPECT_THAT(added.ops, ElementsAre("scatter"));
  EXPECT_THAT(added.elements(), ElementsAre(21, 5, 13, 44, 2, 36));
  EXPECT_THAT(run({kIndices}, [](auto x) { return one_hot(x[0], 3); }).elements(),
              ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(run({kTable}, [](auto x) { return reverse(x[0], {-1}); }).elements(),
              ElementsAre(3, 5, 1, 6, 2, 4));
  EXPECT_THAT(message_of({kTable, kRow}, [](auto x) { return take(x[0], x[1]); }),
              HasSubstr("take(f64[2,3], f64[3]): the indices are f64[3], expected an integer type"));
  EXPECT_THAT(message_of({kTable, kIndices}, [](auto x) { return scatter_add(x[0], x[1], x[0], 1); }),
              HasSubstr("the updates are f64[2,3], expected f64[2,2]"));
}

TEST(TracedRows, Normalisation) {
  const auto of = [](auto function) { return run({kTable}, [&](auto x) { return function(x[0]); }); };
  const Result softmax_of = of([](auto x) { return softmax(x, 0); });
  EXPECT_NEAR(softmax_of.value.at(0), 1 / (1 + std::exp(3.0)), 1e-15);
  EXPECT_NEAR(of([](auto x) { return log_softmax(x, 0); }).value.at(0), -std::log1p(std::exp(3.0)), 1e-15);
  EXPECT_NEAR(of([](auto x) { return logsumexp(x, {0}); }).value.at(0), 4 + std::log1p(std::exp(-3.0)),
              1e-15);
  EXPECT_THAT(of([](auto x) { return prod(x, {-1}); }).elements(), ElementsAre(15, 48));
  EXPECT_DOUBLE_EQ(of([](auto x) { return norm(x); }).value.at(0), std::sqrt(91.0));
  EXPECT_NEAR(of([](auto x) { return layer_norm(x, 0); }).value.at(0), -2 / std::sqrt(8.0 / 3), 1e-15);
  const Result scaled =
      of([](auto x) { return layer_norm(x, full({3}, 2, DType::f64), full({3}, 1, DType::f64), 0); });
  EXPECT_NEAR(scaled.value.at(0), 1 - 4 / std::sqrt(8.0 / 3), 1e-15);
  EXPECT_NEAR(of([](auto x) { return rms_norm(x, 0); }).value.at(0), 1 / std::sqrt(35.0 / 3), 1e-15);
  EXPECT_THAT(message_of({kTable}, [](auto x) { return rms_norm(x[0], full({2}, 1, DType::f64)); }),
              HasSubstr("operand 1, the scale, is f64[2], expected f64[3]"));
}

TEST(TracedRows, LinearAlgebra) {
  const Tensor a = Tensor::of<double>({2, 2}, {4, 2, 2, 10});
  EXPECT_THAT(run({a}, [](auto x) { return cholesky(x[0]); }).elements(), ElementsAre(2, 0, 1, 3));
  const Tensor b = Tensor::of<double>({2}, {4, 12});
  const Result solved = run({a, b}, [](auto x) { return triangular_solve(x[0], x[1]); });
  EXPECT_THAT(solved.ops, ElementsAre("reshape", "triangular_solve", "reshape"));
  EXPECT_THAT(solved.elements(), ElementsAre(1, 1));
  EXPECT_THAT(
      run({a, b},
          [](auto x) { return triangular_solve(x[0], x[1], {.lower = false, .unit_diagonal = true}); })
          .elements(),
      ElementsAre(-20, 12));
  EXPECT_THAT(
      message_of({kTable}, [](auto x) { return cholesky(x[0]); }),
      HasSubstr("cholesky(f64[2,3]): operand 0 is f64[2,3], expected floating point with square matrices"));
  EXPECT_THAT(message_of({a, kRow}, [](auto x) { return triangular_solve(x[0], x[1]); }),
              HasSubstr("the right-hand side is f64[3,1] beside f64[2,2]"));
}

}  // namespace
}  // namespace loipe
