// SPDX-License-Identifier: Apache-2.0
// Attention as one op, as users of fused attention elsewhere found it wrong or missing, and
// against attention written in products and softmax.
#include <cmath>

#include "base/rng.h"
#include "every_way.h"

namespace loipe::testing {
namespace {

using Arguments = std::span<const Traced>;

Tensor matrix(std::int64_t rows, std::int64_t columns, std::initializer_list<double> entries) {
  return Tensor::of<double>({rows, columns}, entries);
}

Tensor random_tensor(Rng& rng, const Shape& shape, double size = 1) {
  Tensor tensor({DType::f64, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng.uniform(-size, size));
  return tensor;
}

/// The same in products and softmax, one head: [n, d] [m, d] [m, e].
Traced in_primitives(const Traced& q, const Traced& k, const Traced& v, bool causal, double scale) {
  Traced logits = scale * matmul(q, transpose(k));
  const Shape shape = logits.shape();
  if (causal)
    logits = select(iota(shape, 0, DType::i64) >= iota(shape, 1, DType::i64), logits,
                    -std::numeric_limits<double>::infinity());
  return matmul(softmax(logits), v);
}

TEST(Users, U67_SecondDerivativesThroughAttention) {
  const auto f = [](Arguments x) { return reshape(attention(x[0], x[1], x[2], {.scale = 1}), {}); };
  const std::vector<Tensor> at{matrix(1, 1, {1}), matrix(2, 1, {0, 1}), matrix(2, 1, {1, 3})};
  check_second_in_every_way(f, at, 0, [](const Derivatives& d) {
    expect_entries(d.by[0], {-0.18171550}, 1e-8);
    expect_entries(d.by[2], {-0.19661193, 0.19661193}, 1e-8);
  });
}

TEST(Users, U70_TheGoldenCausalBlock) {
  const std::vector<Tensor> at{matrix(3, 2, {1, 0, 0, 1, 1, 1}), matrix(3, 2, {1, 0, 1, 1, 0, 2}),
                               matrix(3, 2, {1, 2, 3, 4, 5, 6})};
  const auto f = [](Arguments x) { return attention(x[0], x[1], x[2], {.causal = true}); };
  check_in_every_way(f, at, [](const Derivatives& d) {
    expect_entries(d.value, {1, 2, 2.3395231, 3.3395231, 3.40667256, 4.40667256}, 1e-8);
  });
  check_in_every_way(
      [&](Arguments x) { return sum(f(x)); }, at,
      [](const Derivatives& d) {
        expect_entries(d.by[0], {0, 0, 0, 0.62559439, -0.903828, 1.57696767}, 1e-7);
        expect_entries(d.by[1], {-0.67313967, -1.29873406, -0.23068833, 0.39490606, 0.903828, 0.903828},
                       1e-7);
        expect_entries(d.by[2], {1.52801427, 1.52801427, 1.07087364, 1.07087364, 0.40111209, 0.40111209},
                       1e-7);
      });
}

TEST(Users, U71_HeadsOfQueriesShareHeadsOfKeysInBlocks) {
  const std::vector<Tensor> at{Tensor::of<double>({4, 1, 1}, {1, 2, 3, 4}),
                               Tensor::of<double>({2, 1, 1}, {1, 1}), Tensor::of<double>({2, 1, 1}, {5, 6})};
  check_in_every_way(
      [](Arguments x) {
        const Traced weights = constant(Tensor::of<double>({4, 1, 1}, {1, 10, 100, 1000}));
        return sum(weights * attention(x[0], x[1], x[2]));
      },
      at, [](const Derivatives& d) { expect_entries(d.by[2], {11, 1100}, 1e-12); });
}

TEST(Users, U74_TheScaleIsThatOfTheHeadSize) {
  Tensor q({DType::f64, {1, 129}}), k({DType::f64, {2, 129}});
  for (std::int64_t i = 0; i < 129; ++i) q.set(i, 0.1), k.set(i, 0.1), k.set(129 + i, -0.1);
  check_in_every_way([](Arguments x) { return sum(attention(x[0], x[1], x[2])); },
                     {q, k, matrix(2, 1, {1, 0})},
                     [](const Derivatives& d) {
                       expect_entries(d.value, {0.55654614}, 1e-8);
                       EXPECT_NEAR(d.by[0].at(77), 0.00434595, 1e-8);
                     });
}

TEST(Users, U76_LargeLogits) {
  for (DType dtype : {DType::f32, DType::f64})
    check_in_every_way([](Arguments x) { return sum(attention(x[0], x[1], x[2], {.scale = 1})); },
                       {matrix(1, 1, {30}).converted(dtype), matrix(2, 1, {30, -30}).converted(dtype),
                        matrix(2, 1, {1, 2}).converted(dtype)},
                       [](const Derivatives& d) {
                         expect_entries(d.value, {1}, 0);
                         expect_entries(d.by[0], {0}, 1e-30);
                         expect_entries(d.by[1], {0, 0}, 1e-30);
                         expect_entries(d.by[2], {1, 0}, 1e-30);
                       });
}

/// Batches, head sizes that are no round numbers, a query with a huge outlier. It multiplies the rounding of
/// derivatives by the logits, of which a row's sum is 0: that may show, by a part of the outlier.
TEST(Users, U77_HeadSizesAndOutliers) {
  constexpr double kOutlier = 60;
  Rng rng(77);
  for (std::int64_t size : {1, 3, 64, 80, 129, 256})
    for (std::int64_t batch : {1, 2, 3}) {
      SCOPED_TRACE("head size " + std::to_string(size) + ", batch " + std::to_string(batch));
      std::vector<Tensor> at;
      for (int i = 0; i < 3; ++i) at.push_back(random_tensor(rng, {batch, 5, size}));
      at[0].set(size / 2, kOutlier);
      const auto f = [](Arguments x) {
        const Traced y = attention(x[0], x[1], x[2], {.causal = true});
        return sum(y * y);
      };
      const Program program = traced(f, at);
      const auto gradients = [&](const char* backend, DType dtype) {
        std::vector<Tensor> inputs;
        for (const Tensor& tensor : at) inputs.push_back(tensor.converted(DType::f32).converted(dtype));
        const Program typed = traced(f, inputs);
        CompileOptions options{.request = {floating_arguments(typed), reverse_order(typed), {}},
                               .backend = backend};
        return compile(typed, options).executable->run(inputs);
      };
      const std::vector<Tensor> expected = gradients("reference", DType::f64);
      const std::vector<Tensor> actual = gradients("jit", DType::f32);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        double largest = 0, worst = 0;
        for (std::int64_t i = 0; i < expected[k].element_count(); ++i) {
          largest = std::max(largest, std::abs(expected[k].at(i)));
          worst = std::max(worst, std::abs(expected[k].at(i) - actual[k].at(i)));
        }
        EXPECT_LE(worst, 1e-5 * largest + 4e-6 * kOutlier) << "result " << k;
      }
    }
}

/// The Jacobian by whole matrices of directions, and second derivatives, against elimination
/// through the primitive form.
TEST(Attention, MaterialisedIsThePrimitiveForm) {
  Rng rng(7);
  for (bool causal : {false, true}) {
    const std::vector<Tensor> at{random_tensor(rng, {4, 3}), random_tensor(rng, {4, 3}),
                                 random_tensor(rng, {4, 2})};
    const Program primitive =
        traced([&](Arguments x) { return in_primitives(x[0], x[1], x[2], causal, 0.5); }, at);
    const std::vector<Tensor> expected =
        compile(primitive, {.request = {{0, 1, 2}, reverse_order(primitive), {}}, .backend = "reference"})
            .executable->run(at);
    check_in_every_way(
        [&](Arguments x) { return attention(x[0], x[1], x[2], {.causal = causal, .scale = 0.5}); }, at,
        [&](const Derivatives& d) {
          expect_entries(d.value, entries(expected[0]), 1e-12);
          for (std::size_t k = 0; k < 3; ++k) expect_entries(d.by[k], entries(expected[k + 1]), 1e-12);
        });
  }
}

TEST(Attention, HessianIsThatOfThePrimitiveForm) {
  Rng rng(8);
  const std::vector<Tensor> at{random_tensor(rng, {2, 2}), random_tensor(rng, {2, 2}),
                               random_tensor(rng, {2, 1})};
  const auto hessian_of = [&](const auto& f, const char* backend, const char* order, const char* outer) {
    std::vector<Argument> arguments;
    for (const Tensor& tensor : at)
      arguments.push_back({"x" + std::to_string(arguments.size()), tensor.type()});
    DerivativeOptions options{.order = order, .backend = backend};
    options.outer_order = outer;
    return derivative_of_function(
               DerivativeKind::hessian, [&](Arguments x) { return std::vector<Traced>{f(x)}; }, arguments,
               options)(at)
        .derivatives;
  };
  const auto primitive = [](Arguments x) { return sum(square(in_primitives(x[0], x[1], x[2], true, 0.7))); };
  const auto fused = [](Arguments x) {
    return sum(square(attention(x[0], x[1], x[2], {.causal = true, .scale = 0.7})));
  };
  const std::vector<Tensor> expected = hessian_of(primitive, "reference", "reverse", "forward");
  for (const char* backend : {"reference", "jit"})
    for (const char* order : {"forward", "reverse"})
      for (const char* outer : {"forward", "reverse"}) {
        SCOPED_TRACE(std::string(backend) + " " + order + " " + outer);
        const std::vector<Tensor> actual = hessian_of(fused, backend, order, outer);
        for (std::size_t k = 0; k < expected.size(); ++k)
          expect_entries(actual[k], entries(expected[k]), 1e-11);
      }
}

/// The first row of a causal mask over an excluded key sees none; the derivative of what follows is infinite
/// there, and may not get into other rows.
TEST(Attention, RowsWithoutKeysPassNothing) {
  const std::vector<Tensor> at{matrix(2, 1, {1, 2}), matrix(2, 1, {3, 4}), matrix(2, 1, {5, 6})};
  const Program program = traced(
      [](Arguments x) {
        Tensor mask({DType::boolean, {2}});
        mask.set(1, 1);
        return sum(sqrt(attention(x[0], x[1], x[2], {.causal = true, .key_mask = constant(mask)})));
      },
      at);
  for (const char* backend : {"reference", "jit"}) {
    const CompileOptions options{.request = {{0, 1, 2}, reverse_order(program), {}}, .backend = backend};
    const std::vector<Tensor> results = compile(program, options).executable->run(at);
    expect_entries(results[0], {std::sqrt(6.0)}, 1e-14);
    expect_entries(results[1], {0, 0}, 1e-14);
    expect_entries(results[2], {0, 0}, 1e-14);
    expect_entries(results[3], {0, 0.5 / std::sqrt(6.0)}, 1e-14);
  }
}

TEST(Attention, ThirdDerivativesAreRefused) {
  const Argument q{"q", {DType::f64, {1, 1}}}, k{"k", {DType::f64, {2, 1}}};
  const auto first = [](Arguments x) { return std::vector<Traced>{sum(attention(x[0], x[1], x[1]))}; };
  const Derivative hessian = derivative_of_function(DerivativeKind::hessian, first, std::vector{q, k});
  EXPECT_THROW(derivative_of_program(DerivativeKind::jacobian, hessian.program_text()), Unsupported);
}

TEST(Attention, ShapesThatDoNotFitAreRefused) {
  const auto refused = [](const Shape& q, const Shape& k, const Shape& v, const std::string& part) {
    try {
      traced([](Arguments x) { return attention(x[0], x[1], x[2]); },
             {Tensor({DType::f32, q}), Tensor({DType::f32, k}), Tensor({DType::f32, v})});
      ADD_FAILURE() << "not refused: " << part;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused({3, 2, 4}, {2, 2, 4}, {2, 2, 4}, "multiple");
  refused({2, 4}, {3, 5}, {3, 4}, "k is f32[1,3,5]");
  refused({2, 4}, {3, 4}, {2, 4}, "v is f32[1,2,4]");
  refused({4}, {4}, {4}, "expected q [heads, queries, d]");
}

AttentionApproximation polynomial(int degree) {
  return {.method = AttentionMethod::almost_linear, .degree = degree};
}

std::vector<Tensor> small_logits(std::int64_t heads, std::int64_t n, std::int64_t d) {
  Rng rng(11);
  return {random_tensor(rng, {heads, n, d}, 0.7), random_tensor(rng, {heads, n, d}, 0.7),
          random_tensor(rng, {heads, n, d})};
}

double relative_error(const std::vector<Tensor>& is, const std::vector<Tensor>& should) {
  double difference = 0, size = 0;
  for (std::size_t k = 0; k < is.size(); ++k)
    for (std::int64_t i = 0; i < is[k].element_count(); ++i)
      difference += std::pow(is[k].at(i) - should[k].at(i), 2), size += std::pow(should[k].at(i), 2);
  return std::sqrt(difference / size);
}

DerivativeResult gradient_with(const std::vector<AttentionApproximation>& approximation,
                               const std::vector<Tensor>& at, const std::string& backend = "jit") {
  std::vector<Argument> arguments;
  for (const char* name : {"q", "k", "v"}) arguments.push_back({name, at[arguments.size()].type()});
  DerivativeOptions options;
  options.backend = backend;
  options.attention_reports = true;
  const auto f = [&](Arguments x) {
    return std::vector<Traced>{
        sum(square(attention(x[0], x[1], x[2], {.causal = true, .approximation = approximation})))};
  };
  return derivative_of_function(DerivativeKind::gradient, f, arguments, options)(at);
}

TEST(Users, ApproximateAttentionTellsHowFarOffItIs) {
  const std::vector<Tensor> at = small_logits(2, 80, 4);
  const DerivativeResult exact = gradient_with({}, at), close = gradient_with({polynomial(4)}, at);
  EXPECT_TRUE(exact.attention.empty());
  ASSERT_EQ(close.attention.size(), 1U);
  ASSERT_EQ(close.attention[0].heads.size(), 2U);
  const double error = relative_error(close.derivatives, exact.derivatives);
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.02);
  for (const AttentionHeadReport& head : close.attention[0].heads) {
    EXPECT_EQ(head.backward, AttentionMethod::almost_linear);
    EXPECT_EQ(head.degree, 4);
    EXPECT_EQ(head.features, 70);
    EXPECT_LT(head.dq.value, 0.05);
    EXPECT_GT(head.logit_bound, head.logit_spread);
  }
}

TEST(Users, HeadsOfOneAttentionAreApproximatedEachInItsWay) {
  const std::vector<Tensor> at = small_logits(2, 80, 4);
  const DerivativeResult mixed = gradient_with({polynomial(2), {}}, at), exact = gradient_with({}, at);
  EXPECT_EQ(mixed.attention[0].heads[0].forward, AttentionMethod::almost_linear);
  EXPECT_EQ(mixed.attention[0].heads[1].forward, AttentionMethod::exact);
  for (std::int64_t i = 0; i < 320; ++i) {
    EXPECT_EQ(mixed.derivatives[0].at(320 + i), exact.derivatives[0].at(320 + i));
  }
  EXPECT_THROW(gradient_with({{}, {}, {}}, at), UserError);
}

TEST(Users, TheReferenceBackEndStaysExactWhereApproximationsAreAllowed) {
  const std::vector<Tensor> at = small_logits(1, 40, 3);
  const DerivativeResult exact = gradient_with({}, at, "reference"),
                         allowed = gradient_with({polynomial(2)}, at, "reference");
  EXPECT_EQ(relative_error(allowed.derivatives, exact.derivatives), 0);
  EXPECT_EQ(allowed.attention[0].heads[0].forward, AttentionMethod::exact);
}

TEST(Users, ApproximateGradientsAreThoseOfTheApproximateLoss) {
  std::vector<Tensor> at = small_logits(1, 30, 3);
  // Other coefficients follow the spread of the logits, which the gradient takes for a constant.
  AttentionApproximation taylor = polynomial(2);
  taylor.coefficients = AttentionCoefficients::taylor;
  const DerivativeResult here = gradient_with({taylor}, at);
  const double step = 1e-5;
  for (std::size_t k = 0; k < 3; ++k)
    for (std::int64_t i = 0; i < at[k].element_count(); i += 17) {
      const double x = at[k].at(i);
      at[k].set(i, x + step);
      const double above = gradient_with({taylor}, at).outputs[0].at(0);
      at[k].set(i, x - step);
      const double below = gradient_with({taylor}, at).outputs[0].at(0);
      at[k].set(i, x);
      EXPECT_NEAR(here.derivatives[k].at(i), (above - below) / (2 * step), 1e-6) << k << " " << i;
    }
}

TEST(Users, MistakesInApproximationsAreTold) {
  const std::vector<Tensor> at = small_logits(1, 20, 3);
  EXPECT_THROW(gradient_with({{.method = AttentionMethod::automatic, .tolerance = 0}}, at), UserError);
  EXPECT_THROW(gradient_with({polynomial(13)}, at), UserError);
  EXPECT_THROW(gradient_with({{.method = static_cast<AttentionMethod>(9)}}, at), UserError);
  EXPECT_THROW(gradient_with({{.method = AttentionMethod::clustered, .clusters = 21}}, at), UserError);
}

}  // namespace
}  // namespace loipe::testing
