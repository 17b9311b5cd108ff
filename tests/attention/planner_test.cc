// SPDX-License-Identifier: Apache-2.0
// Plans: that they meet what is asked for, in the regimes that are known, and what is refused.
#include "attention/planner/planner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "attention/planner/cost.h"
#include "attention/polynomial/polynomial.h"

namespace loipe::attention::planner {

namespace {

HeadShape head(std::int64_t n, std::int64_t size, bool is_causal = true) {
  return {
      .readers = 1, .queries = n, .keys = n, .head_size = size, .value_size = size, .is_causal = is_causal};
}

statistics::HeadStatistics logits(double spread, std::int64_t rank, std::int64_t keys = 4096) {
  statistics::HeadStatistics s;
  s.scale = 1, s.keys = keys, s.rank = rank;
  s.logit_spread = spread, s.logit_bound = 6 * spread, s.largest_logit = 4 * spread;
  s.query_norm = s.key_norm = s.value_norm = 1;
  return s;
}

Request within(double tolerance) {
  Request request;
  request.tolerance = tolerance;
  return request;
}

std::vector<double> taylor(int degree) {
  std::vector<double> a(static_cast<std::size_t>(degree) + 1);
  polynomial::taylor(a);
  return a;
}

TEST(AttentionPlanner, CountsMonomials) {
  EXPECT_EQ(monomials(16, 2), 153);
  EXPECT_EQ(monomials(8, 4), 495);
  EXPECT_EQ(monomials(64, 4), 814385);
  EXPECT_EQ(monomials(128, 6), 7177979809);
  EXPECT_GT(monomials(256, 12), 0);
  EXPECT_EQ(monomials(1000000, 12), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(monomials(0, 4), 1);
}

/// Measured relative errors of O and dQ, independent Gaussian heads, Taylor (alt-grad 2.9).
TEST(AttentionPlanner, PredictsMeasuredErrors) {
  const struct {
    std::int64_t size;
    double spread;
    int degree;
    double output, consistent, paper;
  } kRows[] = {{8, 0.25, 2, 1.6e-2, 8.7e-2, 1.8e-2},  {8, 0.25, 4, 8.6e-4, 4.7e-3, 8.0e-4},
               {8, 0.5, 2, 6.3e-2, 2.4e-1, 9.2e-2},   {8, 0.5, 4, 8.5e-3, 3.5e-2, 1.1e-2},
               {8, 0.5, 6, 8.3e-4, 3.5e-3, 9.7e-4},   {16, 0.25, 2, 9.2e-3, 5.0e-2, 9.5e-3},
               {16, 0.25, 3, 1.6e-3, 9.9e-3, 1.5e-3}, {16, 0.5, 2, 7.0e-2, 2.5e-1, 1.0e-1},
               {16, 0.5, 4, 9.3e-3, 5.0e-2, 1.5e-2}};
  using almost_linear::Gradient;
  for (const auto& row : kRows) {
    const auto a = taylor(row.degree);
    const PredictedError error = predict_error(a, row.spread, row.size, Gradient::consistent);
    const double paper = predict_error(a, row.spread, row.size, Gradient::paper).gradient;
    const double ratios[] = {error.output / row.output, error.gradient / row.consistent, paper / row.paper};
    for (const double ratio : ratios) {
      EXPECT_LT(ratio, 2.2) << row.size << " " << row.spread << " " << row.degree;
      EXPECT_GT(ratio, 1 / 2.2) << row.size << " " << row.spread << " " << row.degree;
    }
  }
}

TEST(AttentionPlanner, ChoosesPolynomialsForSmallLogits) {
  const HeadPlan plan = plan_head(head(65536, 16), logits(0.1, 16), within(0.02));
  EXPECT_EQ(plan.method, Method::almost_linear);
  EXPECT_EQ(plan.degree, 2);
  EXPECT_EQ(plan.features, 153);
  EXPECT_EQ(plan.coefficients, Coefficients::hermite);
  EXPECT_EQ(plan.parameter, 0.1);
  EXPECT_LE(plan.predicted_error, 0.02);
  EXPECT_LT(plan.flops * 50, exact_flops(head(65536, 16)));
  EXPECT_FALSE(plan.has_odd_degree);
  // More accuracy takes a higher degree, and a longer sequence to pay.
  const HeadPlan accurate = plan_head(head(65536, 16), logits(0.1, 16), within(1e-4));
  EXPECT_EQ(accurate.method, Method::almost_linear);
  EXPECT_EQ(accurate.degree, 4);
  EXPECT_LE(accurate.predicted_error, 1e-4);
  EXPECT_EQ(plan_head(head(512, 16), logits(0.1, 16), within(1e-4)).method, Method::exact);
  EXPECT_EQ(plan_head(head(64, 64), logits(0.1, 64), within(0.02)).method, Method::exact);
}

TEST(AttentionPlanner, ChoosesClustersForLargeLogits) {
  const HeadPlan plan = plan_head(head(8192, 32, false), logits(2, 20, 8192), within(0.2));
  EXPECT_EQ(plan.method, Method::clustered);
  EXPECT_LE(plan.predicted_error, 0.2);
  EXPECT_GT(plan.clusters, 0);
  EXPECT_GT(plan.exact_keys, plan.clusters);
  EXPECT_LT(plan.flops, exact_flops(head(8192, 32, false)));
  EXPECT_EQ(plan_head(head(8192, 32), logits(2, 20, 8192), within(1e-3)).method, Method::exact);
  // The fully clustered pairing costs less.
  Request request = within(0.2);
  request.pairing = Pairing::fully_approximate;
  EXPECT_LT(plan_head(head(8192, 32, false), logits(2, 20, 8192), request).flops, plan.flops);
}

TEST(AttentionPlanner, ProjectsLowRankHeads) {
  auto s = logits(0.1, 6);
  s.lost_energy = 1e-4;
  const HeadPlan plan = plan_head(head(16384, 64), s, within(0.02));
  EXPECT_EQ(plan.method, Method::almost_linear);
  EXPECT_EQ(plan.rank, 6);
  EXPECT_EQ(plan.features, monomials(6, plan.degree));
  s.lost_energy = 0.5;  // would cost too much accuracy
  EXPECT_EQ(plan_head(head(262144, 64), s, within(0.02)).rank, 0);
}

TEST(AttentionPlanner, TakesWhatIsAskedFor) {
  Request request = within(1e-2);
  request.method = Method::almost_linear;
  request.degree = 3;
  request.coefficients = Coefficients::minimax;
  const HeadPlan odd = plan_head(head(100, 8), logits(0.3, 8), request);
  EXPECT_EQ(odd.method, Method::almost_linear);
  EXPECT_EQ(odd.degree, 3);
  EXPECT_TRUE(odd.has_odd_degree);
  EXPECT_EQ(odd.coefficients, Coefficients::minimax);
  EXPECT_NEAR(odd.parameter, 0.9, 1e-12);
  std::vector<double> a(4), expected(4);
  write_coefficients(odd, a);
  polynomial::minimax(0.3 * 3, expected);
  EXPECT_EQ(a, expected);

  Request clusters = within(0.1);
  clusters.method = Method::clustered;
  clusters.clusters = 40, clusters.exact_keys = 24;
  const HeadPlan plan = plan_head(head(2048, 32), logits(2, 32), clusters);
  EXPECT_EQ(plan.clusters, 40);
  EXPECT_EQ(plan.exact_keys, 24);
  Request exact = within(0.1);
  exact.method = Method::exact;
  EXPECT_EQ(plan_head(head(1 << 20, 16), logits(0.1, 16), exact).method, Method::exact);
}

TEST(AttentionPlanner, RefusesWhatCannotBe) {
  Request request = within(0.1);
  request.method = Method::clustered;
  request.clusters = 101;
  EXPECT_EQ(plan_head(head(100, 8), logits(2, 8), request).refusal, Refusal::clusters);
  request = within(0.1);
  request.method = Method::almost_linear;
  request.memory_limit = 1 << 20;
  request.degree = 4;
  const HeadPlan big = plan_head(head(4096, 64), logits(0.1, 64), request);
  EXPECT_EQ(big.refusal, Refusal::memory);
  EXPECT_EQ(big.features, 814385);
  EXPECT_GT(big.bytes, 1e9);
  request.degree = 13;
  EXPECT_EQ(plan_head(head(4096, 8), logits(0.1, 8), request).refusal, Refusal::degree);
  for (const double tolerance : {0.0, -1.0, std::nan("")})
    EXPECT_EQ(plan_head(head(4096, 8), logits(0.1, 8), within(tolerance)).refusal, Refusal::tolerance);

  // Masks: an automatic choice is exact, with the reason; a method asked for is refused.
  HeadShape windowed = head(65536, 16);
  windowed.has_window = true;
  const HeadPlan plan = plan_head(windowed, logits(0.1, 16), within(0.1));
  EXPECT_EQ(plan.method, Method::exact);
  EXPECT_EQ(plan.refusal, Refusal::none);
  EXPECT_EQ(plan.reason, Reason::mask);
  request = within(0.1);
  request.method = Method::almost_linear;
  EXPECT_EQ(plan_head(windowed, logits(0.1, 16), request).refusal, Refusal::mask);
  auto bad = logits(0.1, 16);
  bad.logit_spread = std::nan("");
  EXPECT_EQ(plan_head(head(65536, 16), bad, within(0.1)).method, Method::exact);
  EXPECT_EQ(plan_head(head(65536, 16), bad, request).refusal, Refusal::not_finite);
}

TEST(AttentionPlanner, EscalatesUntilExact) {
  const HeadShape shape = head(65536, 16);
  const auto s = logits(0.1, 16);
  Request request = within(0.02);
  HeadPlan plan = plan_head(shape, s, request);
  const HeadPlan next = escalate(plan, 0.05, shape, s, request);
  EXPECT_EQ(next.method, Method::almost_linear);
  EXPECT_EQ(next.degree, plan.degree + 2);
  EXPECT_LT(next.predicted_error, 0.05);
  EXPECT_LE(next.predicted_error, 0.02);
  // As far as the measurement says, at once.
  const HeadShape small = head(65536, 4);
  HeadPlan coarse = plan_head(small, logits(0.1, 4), request);
  request.tolerance = 1e-5;
  EXPECT_GE(escalate(coarse, 0.1, small, logits(0.1, 4), request).degree, coarse.degree + 4);
  request.tolerance = 0.02;
  int steps = 0;
  for (; plan.method != Method::exact && steps < 20; ++steps) plan = escalate(plan, 0.05, shape, s, request);
  EXPECT_EQ(plan.method, Method::exact);
  EXPECT_LE(steps, 7);

  request.method = Method::clustered;
  plan = plan_head(head(4096, 32), logits(2, 32), request);
  HeadPlan more = escalate(plan, 0.3, head(4096, 32), logits(2, 32), request);
  EXPECT_TRUE(more.method == Method::exact || more.exact_keys > plan.exact_keys);
  for (steps = 0; more.method != Method::exact && steps < 20; ++steps)
    more = escalate(more, 0.3, head(4096, 32), logits(2, 32), request);
  EXPECT_EQ(more.method, Method::exact);
}

TEST(AttentionPlanner, IsDeterministicAndCountsPairs) {
  EXPECT_EQ(pairs(head(100, 8)), 5050);
  EXPECT_EQ(pairs(head(100, 8, false)), 10000);
  HeadShape tall = head(100, 8);
  tall.keys = 40;
  EXPECT_EQ(pairs(tall), 40 * 41 / 2 + 60 * 40);
  const HeadPlan a = plan_head(head(9999, 24), logits(0.4, 20), within(0.03)),
                 b = plan_head(head(9999, 24), logits(0.4, 20), within(0.03));
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.degree, b.degree);
  EXPECT_EQ(a.seconds(2.0), a.flops / 2);
}

}  // namespace

}  // namespace loipe::attention::planner
