// SPDX-License-Identifier: Apache-2.0
// The rigorous bound against dense evaluations of exact and of polynomial attention.
#include "attention/certificate/bound.h"

#include <gtest/gtest.h>

#include <vector>

#include "attention/dense_polynomial.h"

namespace loipe::attention::testing {

namespace {

using certificate::Bound;
using certificate::RigorousBound;
using certificate::Vacuity;

struct Measured {
  std::vector<statistics::HeadStatistics> heads;
  std::vector<double> basis;  ///< [head_size][head_size]
};
Measured measure(const Case<double>& c, double energy) {
  Measured m;
  m.heads.resize(1);
  m.basis.resize(static_cast<std::size_t>(c.shape.head_size * c.shape.head_size));
  std::vector<std::byte> memory(statistics::statistics_workspace(c.problem(), 1) + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  statistics::statistics(c.problem(), {energy}, m.heads, m.basis.data(), {},
                         std::span(memory).subspan((64 - address % 64) % 64));
  return m;
}

/// Largest row and Frobenius norm of a difference.
Bound difference(const Array<double>& a, const Array<double>& b) {
  Bound d{0, 0};
  for (std::int64_t h = 0; h < a.heads(); ++h)
    for (std::int64_t i = 0; i < a.row_count(); ++i) {
      double row = 0;
      for (std::int64_t x = 0; x < a.columns(); ++x) {
        const double off = a.at(h, i, x) - b.at(h, i, x);
        row += off * off;
      }
      d.row = std::max(d.row, std::sqrt(row)), d.frobenius += row;
    }
  d.frobenius = std::sqrt(d.frobenius);
  return d;
}

/// One head of keys with one or two readers, logits of a spread in which polynomials mean something.
Case<double> small_case(Rng& rng) {
  Case<double> c;
  const std::int64_t size = rng.between(1, 12);
  c.shape = {rng.between(1, 2), 1, rng.between(1, 30), rng.between(1, 30), size, rng.between(1, 9)};
  c.is_causal = rng.chance(0.5);
  fill(c, rng, rng.chance(0.3) ? 5 : 0);
  c.scale *= std::exp(rng.uniform(-4, -0.3));
  if (rng.chance(0.5)) c.glse.fill([](auto...) { return 0.0; });
  if (rng.chance(0.3)) {
    c.key_mask.resize(static_cast<std::size_t>(c.shape.keys));
    for (auto& allowed : c.key_mask) allowed = rng.chance(0.7);
  }
  if (rng.chance(0.4))  // queries in few directions
    c.q.fill([&](std::int64_t, std::int64_t, std::int64_t x) { return rng.normal() * (x < 2 ? 1 : 0.01); });
  return c;
}

void expect_within(const Bound& error, const Bound& bound, const char* name) {
  EXPECT_LE(error.row, bound.row + 1e-11) << name;
  EXPECT_LE(error.frobenius, bound.frobenius + 1e-11) << name;
}

TEST(AttentionBound, IsNeverExceeded) {
  Rng rng(17);
  int cases = 0, projected = 0;
  double tightest_o = 0, tightest_q = 0, tightest_k = 0, tightest_v = 0;
  for (int round = 0; cases < 1000; ++round) {
    ASSERT_LT(round, 3000);
    const Case<double> c = small_case(rng);
    const Measured m = measure(c, rng.chance(0.3) ? 0.9 : 0.999);
    const statistics::HeadStatistics& s = m.heads[0];
    almost_linear::Approximation a;
    a.degree = static_cast<int>(rng.between(1, 5));
    std::vector<double> coefficients(static_cast<std::size_t>(a.degree) + 1);
    const std::int64_t kind = rng.below(3);
    if (kind == 0) polynomial::taylor(coefficients);
    else if (kind == 1) polynomial::hermite(s.logit_spread, coefficients);
    else polynomial::minimax(s.logit_bound, coefficients);
    a.coefficients = coefficients.data();
    a.gradient = rng.chance(0.5) ? almost_linear::Gradient::paper : almost_linear::Gradient::consistent;
    a.window = rng.chance(0.2) ? 3 : 0;
    std::vector<double> basis(static_cast<std::size_t>(c.shape.head_size * s.rank));
    statistics::copy_columns(m.basis.data(), c.shape.head_size, s.rank, basis.data());
    if (s.rank > 0 && s.rank < c.shape.head_size) a.rank = s.rank, a.basis = basis.data(), ++projected;
    const RigorousBound bound = certificate::rigorous_bound(c.problem(), 0, s, a, c.cotangents());
    if (bound.vacuity != Vacuity::none) {
      EXPECT_EQ(bound.vacuity, Vacuity::polynomial);
      EXPECT_TRUE(std::isinf(bound.o.row) && std::isinf(bound.k.frobenius));
      continue;
    }
    ++cases;
    const auto exact = DensePolynomial<double>(c, nullptr).results();
    const auto approximate = DensePolynomial<double>(c, &a).results();
    const Bound o = difference(approximate.o, exact.o), q = difference(approximate.dq, exact.dq),
                k = difference(approximate.dk, exact.dk), v = difference(approximate.dv, exact.dv);
    SCOPED_TRACE(c.text() + " degree " + std::to_string(a.degree) + " rank " + std::to_string(a.rank));
    expect_within(o, bound.o, "o"), expect_within(q, bound.q, "dq");
    expect_within(k, bound.k, "dk"), expect_within(v, bound.v, "dv");
    if (bound.o.frobenius < 1e-9) continue;
    tightest_o = std::max(tightest_o, o.row / bound.o.row),
    tightest_q = std::max(tightest_q, q.row / bound.q.row);
    tightest_k = std::max(tightest_k, k.frobenius / bound.k.frobenius);
    tightest_v = std::max(tightest_v, v.frobenius / bound.v.frobenius);
  }
  EXPECT_GT(projected, 100);
  // It is no empty promise: some case comes near.
  EXPECT_GT(tightest_o, 0.9);
  EXPECT_GT(tightest_q, 0.1);
  EXPECT_GT(tightest_k, 0.05);
  EXPECT_GT(tightest_v, 0.1);
}

TEST(AttentionBound, ShrinksWithTheDegree) {
  Rng rng(5);
  Case<double> c;
  c.shape = {1, 1, 200, 200, 8, 8};
  fill(c, rng);
  c.scale *= 0.1;
  const Measured m = measure(c, 0.999);
  double last = 1e300;
  for (const int degree : {2, 4, 6}) {
    std::vector<double> coefficients(static_cast<std::size_t>(degree) + 1);
    polynomial::minimax(m.heads[0].logit_bound, coefficients);
    almost_linear::Approximation a;
    a.degree = degree, a.coefficients = coefficients.data();
    const RigorousBound bound = certificate::rigorous_bound(c.problem(), 0, m.heads[0], a, c.cotangents());
    EXPECT_LT(bound.q.frobenius, last / 20) << degree;
    EXPECT_LT(bound.k.frobenius, 1e300);
    last = bound.q.frobenius;
  }
  EXPECT_LT(last, 1e-3);
}

TEST(AttentionBound, RefusesOutsideOfItsAssumptions) {
  Rng rng(6);
  Case<double> c;
  c.shape = {1, 1, 40, 40, 8, 8};
  fill(c, rng);
  const std::vector<double> taylor{1, 1, 0.5};
  almost_linear::Approximation a;
  a.coefficients = taylor.data();
  const auto vacuity = [&](const Case<double>& of) {
    const RigorousBound bound =
        certificate::rigorous_bound(of.problem(), 0, measure(of, 0.999).heads[0], a, of.cotangents());
    EXPECT_EQ(std::isinf(bound.v.row), bound.vacuity != Vacuity::none);
    EXPECT_EQ(*certificate::text_of(bound.vacuity) == 0, bound.vacuity == Vacuity::none);
    return bound.vacuity;
  };
  c.scale = 0.01;
  EXPECT_EQ(vacuity(c), Vacuity::none);
  c.scale = 1;
  EXPECT_EQ(vacuity(c), Vacuity::polynomial);
  c.scale = 1e6;
  EXPECT_EQ(vacuity(c), Vacuity::range);
  c.scale = 0.01;
  c.window = 5;
  EXPECT_EQ(vacuity(c), Vacuity::mask);
  c.window = 0;
  a.is_centred = false;
  EXPECT_EQ(vacuity(c), Vacuity::not_centred);
  a.is_centred = true;
  set(c.k.rows(), 0, 3, 3, std::numeric_limits<double>::infinity());
  EXPECT_EQ(vacuity(c), Vacuity::not_finite);
}

TEST(AttentionBound, RelativeToWhatIsKnown) {
  EXPECT_DOUBLE_EQ((Bound{0, 1}.relative(11)), 0.1);
  EXPECT_TRUE(std::isinf(Bound{0, 1}.relative(1)));
  EXPECT_EQ((Bound{0, 0}.relative(1)), 0);
}

}  // namespace

}  // namespace loipe::attention::testing
