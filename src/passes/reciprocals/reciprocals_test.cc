// SPDX-License-Identifier: Apache-2.0
#include "passes/reciprocals/reciprocals.h"

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "ir/interpreter.h"
#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

const std::string kOne = "  %c1 = constant {value=f64[](1.0)}\n";

TEST(Reciprocals, TwoDivisionsByOneValueShareItsReciprocal) {
  expect_rewrite(reciprocals, "%x: f64[], %y: f64[], %z: f64[]",
                 "  %1 = div(%x, %z)\n  %2 = div(%y, %z)\n  return %1, %2\n",
                 kOne + "  %1 = div(%c1, %z)\n  %2 = mul(%x, %1)\n  %3 = mul(%y, %1)\n  return %2, %3\n");
  expect_unchanged(reciprocals, "%x: f64[], %y: f64[], %z: f64[]",
                   "  %1 = div(%x, %z)\n  %2 = div(%z, %y)\n  return %1, %2\n");
}

TEST(Reciprocals, OneThatIsThereIsTheOne) {
  expect_rewrite(reciprocals, "%x: f64[2], %z: f64[2]",
                 kOne + "  %1 = div(%x, %z)\n  %2 = div(%c1, %z)\n  return %1, %2\n",
                 kOne + "  %1 = div(%c1, %z)\n  %2 = mul(%x, %1)\n  return %2, %1\n");
}

TEST(Reciprocals, ProductsWithItThatAreThereAreMet) {
  expect_rewrite(reciprocals, "%x: f64[], %z: f64[]",
                 kOne + "  %1 = div(%x, %z)\n  %2 = div(%c1, %z)\n  %3 = mul(%x, %2)\n  return %1, %3\n",
                 kOne + "  %1 = div(%c1, %z)\n  %2 = mul(%x, %1)\n  return %2, %2\n");
}

TEST(Reciprocals, OnesOfALargerShapeRepeatTheReciprocal) {
  expect_rewrite(reciprocals, "%z: f64[1]",
                 "  %c1 = constant {value=f64[3](1.0,1.0,1.0)}\n  %1 = div(%c1, %z)\n  return %1\n",
                 kOne +
                     "  %1 = div(%c1, %z)\n"
                     "  %2 = broadcast_in_dim(%1) {dimensions=[0], shape=[3]}\n  return %2\n");
}

TEST(Reciprocals, CountsDivisionsByElements) {
  expect_rewrite(reciprocals, "%x: f64[2,3], %z: f64[2,1]", "  %1 = div(%x, %z)\n  return %1\n",
                 kOne + "  %1 = div(%c1, %z)\n  %2 = mul(%x, %1)\n  return %2\n");
  expect_rewrite(
      reciprocals, "%x: f64[2,3], %z: f64[3]",
      "  %1 = broadcast_in_dim(%z) {dimensions=[1], shape=[2,3]}\n  %2 = div(%x, %1)\n  return %2\n",
      kOne +
          "  %1 = div(%c1, %z)\n  %2 = broadcast_in_dim(%1) {dimensions=[1], shape=[2,3]}\n"
          "  %3 = mul(%x, %2)\n  return %3\n");
  expect_unchanged(reciprocals, "%x: f64[2,3], %z: f64[2,3]", "  %1 = div(%x, %z)\n  return %1\n");
}

TEST(Reciprocals, DeadDivisionsDoNotCount) {
  expect_rewrite(reciprocals, "%x: f64[], %y: f64[], %z: f64[]",
                 "  %1 = div(%x, %z)\n  %2 = div(%y, %z)\n  return %1\n",
                 "  %1 = div(%x, %z)\n  return %1\n");
}

TEST(Reciprocals, PowersOfTwoAreExact) {
  expect_rewrite(reciprocals, "%x: f64[]",
                 "  %c1 = constant {value=f64[](-8.0)}\n  %1 = div(%x, %c1)\n  return %1\n",
                 "  %c1 = constant {value=f64[](-0.125)}\n  %1 = mul(%x, %c1)\n  return %1\n");
  expect_rewrite(reciprocals, "%x: f32[2]",
                 "  %c1 = constant {value=f32[2](2.0,0.25)}\n  %1 = div(%x, %c1)\n  return %1\n",
                 "  %c1 = constant {value=f32[2](0.5,4.0)}\n  %1 = mul(%x, %c1)\n  return %1\n");
  for (const char* y : {"3.0", "0.0", "inf", "nan", "8.98846567431158e+307", "5e-324"})
    expect_unchanged(
        reciprocals, "%x: f64[]",
        "  %c1 = constant {value=f64[](" + std::string(y) + ")}\n  %1 = div(%x, %c1)\n  return %1\n");
  expect_rewrite(reciprocals, "%x: f64[], %y: f64[]",
                 "  %c1 = constant {value=f64[](10.0)}\n  %1 = div(%x, %c1)\n  %2 = div(%y, %c1)\n"
                 "  return %1, %2\n",
                 "  %c1 = constant {value=f64[](0.1)}\n  %1 = mul(%x, %c1)\n  %2 = mul(%y, %c1)\n"
                 "  return %1, %2\n");
}

TEST(Reciprocals, IntegersAreNotInverted) {
  expect_unchanged(reciprocals, "%x: i32[], %y: i32[], %z: i32[]",
                   "  %c1 = constant {value=i32[](2)}\n  %1 = div(%x, %z)\n  %2 = div(%y, %z)\n"
                   "  %3 = div(%x, %c1)\n  return %1, %2, %3\n");
}

/// x/y before and after, on operands whose reciprocal is normal.
template <class T>
void expect_at_most_one_ulp(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const Program program =
      program_from_text(program_text("%x: " + std::string(to_string(dtype_of<T>())) +
                                         "[64,8], %y: " + std::string(to_string(dtype_of<T>())) + "[64,1]",
                                     "  %1 = div(%x, %y)\n  return %1\n"));
  const auto draw = [&](Shape shape) {
    Tensor tensor(TensorType{dtype_of<T>(), std::move(shape)});
    constexpr int kExponents = std::numeric_limits<T>::max_exponent - 3;
    for (T& v : tensor.elements<T>())
      v = std::ldexp(static_cast<T>(rng.uniform(1, 2)),
                     static_cast<int>(rng.between(-kExponents, kExponents)));
    return tensor;
  };
  const std::vector<Tensor> arguments{draw({64, 8}), draw({64, 1})};
  const Tensor exact = evaluate(program, arguments)[0], shared = evaluate(reciprocals(program), arguments)[0];
  for (std::size_t i = 0; i < exact.elements<T>().size(); ++i) {
    const T x = exact.elements<T>()[i], y = shared.elements<T>()[i];
    EXPECT_TRUE(y == x || y == std::nextafter(x, y)) << x << " became " << y;
  }
}

TEST(Reciprocals, ResultsDifferByAtMostOneUlp) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    expect_at_most_one_ulp<double>(seed);
    expect_at_most_one_ulp<float>(seed);
  }
}

TEST(Reciprocals, ZeroInfinityAndNanDivideAsBefore) {
  const Program program =
      program_from_text(program_text("%x: f64[5,1], %y: f64[1,5]", "  %1 = div(%x, %y)\n  return %1\n"));
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<Tensor> arguments{Tensor::of<double>({5, 1}, {0.0, -0.0, inf, -inf, nan}),
                                      Tensor::of<double>({1, 5}, {0.0, -0.0, inf, -inf, nan})};
  const Tensor before = evaluate(program, arguments)[0], after = evaluate(reciprocals(program), arguments)[0];
  for (std::int64_t i = 0; i < before.element_count(); ++i) {
    if (std::isnan(before.at(i))) EXPECT_TRUE(std::isnan(after.at(i))) << i;
    else
      EXPECT_TRUE(after.at(i) == before.at(i) && std::signbit(after.at(i)) == std::signbit(before.at(i)))
          << i;
  }
}

}  // namespace
}  // namespace loipe::passes
