// SPDX-License-Identifier: Apache-2.0
// The reference against central differences, and its derivatives against each other.
#include <gtest/gtest.h>

#include "attention/attention_case.h"
#include "attention/reference/reference_attention.h"

namespace loipe::attention::testing {

namespace {

using Doubles = Array<double>;

/// Results of a forward, JVP or VJP, in new arrays.
struct Outputs {
  Doubles o, lse;
};
struct Inputs {
  Doubles q, k, v;
  std::vector<double> bias;
};

Outputs forward(const Case<double>& c) {
  Rng rng(1);
  Outputs out{{c.shape.heads, c.shape.queries, c.shape.value_size, rng},
              {c.shape.heads, c.shape.queries, 1, rng}};
  reference::forward<double>(c.problem(), {out.o.rows(), out.lse.rows()});
  return out;
}

Inputs empty_inputs(const Case<double>& c) {
  Rng rng(1);
  const Shape& s = c.shape;
  return {{s.heads, s.queries, s.head_size, rng},
          {s.kv_heads, s.keys, s.head_size, rng},
          {s.kv_heads, s.keys, s.value_size, rng},
          std::vector<double>(c.bias.size())};
}

InputCotangents<double> results(const Case<double>& c, Inputs& inputs) {
  return {inputs.q.rows(), inputs.k.rows(), inputs.v.rows(), c.with_strides_of_bias(inputs.bias)};
}

Inputs vjp(const Case<double>& c) {
  Inputs out = empty_inputs(c);
  reference::vjp<double>(c.problem(), c.cotangents(), results(c, out));
  return out;
}

void move(Doubles& array, const Doubles& tangent, double step) {
  array.fill([&](std::int64_t h, std::int64_t i, std::int64_t j) {
    return array.at(h, i, j) + step * tangent.at(h, i, j);
  });
}

Case<double> moved(Case<double> c, double step) {
  move(c.q, c.tq, step), move(c.k, c.tk, step), move(c.v, c.tv, step);
  move(c.g, c.tg, step), move(c.glse, c.tglse, step);
  for (std::size_t i = 0; i < c.bias.size(); ++i) c.bias[i] += step * c.bias_tangent[i];
  return c;
}

Doubles difference(const Doubles& after, const Doubles& before, double step) {
  Doubles result = after;
  result.fill([&](auto... at) {
    const double a = after.at(at...), b = before.at(at...);
    return a == b ? 0 : (a - b) / (2 * step);
  });
  return result;
}

double inner(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::int64_t h = 0; h < a.heads(); ++h)
    for (std::int64_t i = 0; i < a.row_count(); ++i)
      for (std::int64_t c = 0; c < a.columns(); ++c) {
        const double product = a.at(h, i, c) * b.at(h, i, c);
        sum += std::isfinite(product) ? product : 0;  // masked keys are NaN, lse without keys is -inf
      }
  return sum;
}

constexpr double kStep = 1e-5, kTolerance = 1e-6;

}  // namespace

TEST(ReferenceAttention, JvpIsTheDifferenceOfForward) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const Case<double> c = random_case<double>(rng, 12);
    Outputs out = forward(c);
    reference::jvp<double>(c.problem(), c.tangents(), {out.o.rows(), out.lse.rows()});
    const Outputs after = forward(moved(c, kStep)), before = forward(moved(c, -kStep));
    EXPECT_LT(deviation(out.o, difference(after.o, before.o, kStep)), kTolerance) << seed << ": " << c.text();
    EXPECT_LT(deviation(out.lse, difference(after.lse, before.lse, kStep)), kTolerance)
        << seed << ": " << c.text();
  }
}

TEST(ReferenceAttention, VjpIsDualToJvp) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const Case<double> c = random_case<double>(rng, 20);
    Outputs out = forward(c);
    reference::jvp<double>(c.problem(), c.tangents(), {out.o.rows(), out.lse.rows()});
    const Inputs in = vjp(c);
    const double left = inner(c.g, out.o) + inner(c.glse, out.lse);
    double right = inner(in.q, c.tq) + inner(in.k, c.tk) + inner(in.v, c.tv);
    // A bias with stride 0 is one number that many tangents would share: each has its sum once.
    for (std::size_t i = 0; i < c.bias.size(); ++i) right += in.bias[i] * c.bias_tangent[i];
    EXPECT_NEAR(left, right, 1e-10 * (1 + std::abs(left))) << seed << ": " << c.text();
  }
}

TEST(ReferenceAttention, TangentOfTheVjpIsTheDifferenceOfTheVjp) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const Case<double> c = random_case<double>(rng, 12);
    Inputs out = empty_inputs(c);
    reference::vjp_jvp<double>(c.problem(), c.cotangents(), c.tangents(), c.cotangent_tangents(),
                               results(c, out));
    const Inputs after = vjp(moved(c, kStep)), before = vjp(moved(c, -kStep));
    EXPECT_LT(deviation(out.q, difference(after.q, before.q, kStep)), kTolerance) << seed << ": " << c.text();
    EXPECT_LT(deviation(out.k, difference(after.k, before.k, kStep)), kTolerance) << seed << ": " << c.text();
    EXPECT_LT(deviation(out.v, difference(after.v, before.v, kStep)), kTolerance) << seed << ": " << c.text();
    for (std::size_t i = 0; i < out.bias.size(); ++i)
      EXPECT_NEAR(out.bias[i], (after.bias[i] - before.bias[i]) / (2 * kStep), 1e-5)
          << seed << ": " << c.text();
  }
}

}  // namespace loipe::attention::testing
