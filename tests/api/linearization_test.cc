// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <functional>

namespace loipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const auto kFunction = [](auto A, auto x) { return std::tuple(tanh(matmul(A, exp(x))), x * 2.0, sum(A)); };
const TensorType kMatrix{DType::f64, {2, 3}}, kVector{DType::f64, {3}};

Tensor matrix() { return Tensor::of<double>({2, 3}, {0.1, 0.2, 0.3, -0.4, 0.5, 0.6}); }
Tensor vector(double scale) { return Tensor::of<double>({3}, {scale, -0.5 * scale, 0.2}); }

void expect_near(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].type(), expected[i].type());
    for (std::int64_t e = 0; e < actual[i].element_count(); ++e)
      EXPECT_NEAR(actual[i].at(e), expected[i].at(e), 1e-14) << i << " " << e;
  }
}

TEST(Linearization, AppliesTheJacobianOfThePointManyTimes) {
  for (const char* backend : {"reference", "jit"}) {
    const DerivativeOptions options{.backend = backend};
    const Linearization L = linearize(kFunction, {{"A", kMatrix}, {"x", kVector}}, options);
    const Linearization P = pullback(kFunction, {{"A", kMatrix}, {"x", kVector}}, options);
    const Derivative forward = jvp(kFunction, {{"A", kMatrix}, {"x", kVector}}, options);
    const Derivative backward = vjp(kFunction, {{"A", kMatrix}, {"x", kVector}}, options);
    for (double scale : {0.3, 1.0}) {
      const Linearization::Point pushed = L.at({matrix(), vector(scale)}),
                                 pulled = P.at({matrix(), vector(scale)});
      for (double direction : {1.0, -2.0}) {
        const DerivativeResult jvp = forward({matrix(), vector(scale)}, {matrix(), vector(direction)});
        expect_near(pushed.outputs, jvp.outputs);
        expect_near(L.apply(pushed, {matrix(), vector(direction)}), jvp.derivatives);
        const Tensor u = Tensor::of<double>({2}, {direction, 3});
        const DerivativeResult vjp =
            backward({matrix(), vector(scale)}, {u, vector(direction), Tensor::scalar(direction)});
        expect_near(pulled.outputs, vjp.outputs);
        expect_near(P.apply(pulled, {u, vector(direction), Tensor::scalar(direction)}), vjp.derivatives);
      }
    }
  }
}

TEST(Linearization, TheLinearPartComputesNoFunction) {
  const Linearization L = linearize(kFunction, {{"A", kMatrix}, {"x", kVector}});
  EXPECT_THAT(L.point_program_text(), HasSubstr("exp("));
  EXPECT_THAT(L.point_program_text(), HasSubstr("tanh("));
  EXPECT_THAT(L.linear_program_text(), Not(HasSubstr("exp(")));
  EXPECT_THAT(L.linear_program_text(), Not(HasSubstr("tanh(")));
  EXPECT_THAT(L.linear_program_text(), HasSubstr("tangent.x"));
}

TEST(Linearization, KindsAndBatchesThatItDoesNotHave) {
  const Argument arguments[] = {{"A", kMatrix}, {"x", kVector}};
  const auto linearize_kind = [&](DerivativeKind kind, const DerivativeOptions& options) {
    linearization_of_function(kind, detail::pack_function<2>(kFunction), arguments, options);
  };
  EXPECT_THROW(linearize_kind(DerivativeKind::hessian, {}), UserError);
  EXPECT_THROW(linearize_kind(DerivativeKind::jvp, {.batch = 8}), Unsupported);
}

}  // namespace
}  // namespace loipe
