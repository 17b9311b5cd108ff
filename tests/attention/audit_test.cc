// SPDX-License-Identifier: Apache-2.0
// Audits against errors that are known.
#include "attention/certificate/audit.h"

#include <gtest/gtest.h>

#include <vector>

#include "attention/dense_polynomial.h"
#include "attention/reference/reference_attention.h"

namespace loipe::attention::testing {

namespace {

using certificate::Audit;
using certificate::Estimate;
using certificate::Kind;
using certificate::Sampling;

template <class E>
DenseResults<E> exact_results(const Case<E>& c) {
  DenseResults<E> r(c.shape);
  reference::forward<E>(c.problem(), {r.o.rows(), r.lse.rows()});
  reference::vjp<E>(c.problem(), c.cotangents(), {r.dq.rows(), r.dk.rows(), r.dv.rows(), {}});
  return r;
}

template <class E>
struct Auditor {
  const Case<E>& c;
  Parallel parallel{};

  Audit run(const certificate::Approximate<E>& approximate, const certificate::ExactForward<E>& exact,
            const certificate::Polynomial<E>& polynomial, const Sampling& sampling) const {
    std::vector<std::byte> memory(certificate::audit_workspace(c.problem(), sampling, parallel.threads) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return certificate::audit(c.problem(), c.cotangents(), approximate, exact, polynomial, sampling, parallel,
                              std::span(memory).subspan((64 - address % 64) % 64));
  }
  /// Everything of r, with the forward pass exact or not.
  Audit run(DenseResults<E>& r, const DenseResults<E>* exact, const Sampling& sampling,
            const almost_linear::Approximation* approximation = nullptr) const {
    certificate::ExactForward<E> forward;
    if (exact != nullptr) forward = {exact->o.rows(), exact->lse.rows()};
    certificate::Polynomial<E> polynomial;
    if (approximation != nullptr) polynomial = {approximation, r.denominator.rows()};
    return run({r.o.rows(), {r.dq.rows(), r.dk.rows(), r.dv.rows(), {}}}, forward, polynomial, sampling);
  }
};

/// Exact results have no error, whatever masks, shapes and cotangents are: samples are computed right.
template <class E>
void expect_no_error_of_exact_results(double tolerance) {
  Rng rng(11);
  for (int round = 0; round < 60; ++round) {
    auto c = random_case<E>(rng, 150);
    if (c.shape.queries == 0 || c.shape.keys == 0) continue;
    c.bias.clear();
    DenseResults<E> exact = exact_results(c);
    const Auditor<E> auditor{c};
    const Sampling sampling{rng.between(1, 70), rng.between(1, 70), false, rng.next()};
    const Audit online = auditor.run(exact, nullptr, sampling), known = auditor.run(exact, &exact, sampling);
    EXPECT_EQ(online.o.kind, Kind::sampled_rows) << c.text();
    EXPECT_EQ(online.k.kind, Kind::none) << c.text();
    EXPECT_EQ(known.o.kind, Kind::none) << c.text();
    EXPECT_EQ(known.k.kind, Kind::sampled_columns) << c.text();
    for (const Estimate& e : {online.o, online.q, known.q, known.k, known.v})
      EXPECT_LT(e.value, tolerance) << c.text() << " " << round;
  }
}
TEST(AttentionAudit, ExactResultsHaveNoErrorF64) { expect_no_error_of_exact_results<double>(1e-10); }
TEST(AttentionAudit, ExactResultsHaveNoErrorF32) { expect_no_error_of_exact_results<float>(2e-4); }

Case<double> gaussian_case(const Shape& shape, double spread, bool is_causal, std::uint64_t seed) {
  Rng rng(seed);
  Case<double> c;
  c.shape = shape;
  c.is_causal = is_causal;
  fill(c, rng);
  c.glse.fill([](auto...) { return 0.0; });
  c.scale *= spread;
  return c;
}

/// How often estimates hit over many seeds.
struct Score {
  int calls = 0, covered = 0, near = 0;
  double squares = 0;
  void add(const Estimate& e, double truth, double accuracy) {
    ++calls, squares += e.value * e.value / (truth * truth);
    covered += e.low <= truth && truth <= e.high;
    near += std::abs(e.value / truth - 1) <= accuracy;
  }
};

TEST(AttentionAudit, PolynomialErrorsAreFoundWithinTheInterval) {
  for (const bool is_causal : {false, true}) {
    const auto c = gaussian_case({4, 2, 400, 400, 8, 8}, 0.4, is_causal, 3);
    std::vector<double> taylor(3);
    polynomial::taylor(taylor);
    std::vector<double> both = taylor;
    both.insert(both.end(), taylor.begin(), taylor.end());
    almost_linear::Approximation approximation;
    approximation.degree = 2, approximation.coefficients = both.data(), approximation.window = 5;
    for (const auto gradient : {almost_linear::Gradient::consistent, almost_linear::Gradient::paper}) {
      approximation.gradient = gradient;
      DenseResults<double> exact = exact_results(c), r = DensePolynomial<double>(c, &approximation).results();
      Score o, q, k, v, k_columns, v_columns;
      const double k_truth = relative_error(r.dk, exact.dk), v_truth = relative_error(r.dv, exact.dv);
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const Audit audit = Auditor<double>{c}.run(r, nullptr, {32, 32, true, seed}, &approximation);
        o.add(audit.o, relative_error(r.o, exact.o), 0.2);
        q.add(audit.q, relative_error(r.dq, exact.dq), 0.2);
        EXPECT_EQ(audit.k.kind, Kind::sampled_pairs);
        k.add(audit.k, k_truth, 0.5), v.add(audit.v, v_truth, 0.5);
        const Audit columns = Auditor<double>{c}.run(r, nullptr, {32, 32, false, seed}, &approximation);
        EXPECT_EQ(columns.k.kind, Kind::approximate_columns);
        k_columns.add(columns.k, k_truth, 0.2), v_columns.add(columns.v, v_truth, 0.2);
      }
      for (const Score& score : {o, q}) {
        EXPECT_GE(score.covered, 160) << is_causal;
        EXPECT_GE(score.near, 180) << is_causal;
        EXPECT_NEAR(score.squares / score.calls, 1, 0.05) << is_causal;
      }
      for (const Score& score : {k_columns, v_columns}) {
        EXPECT_GE(score.covered, 180) << is_causal;
        EXPECT_GE(score.near, 170) << is_causal;
        EXPECT_NEAR(score.squares / score.calls, 1, 0.25) << is_causal;
      }
      for (const Score& score : {k, v}) {
        EXPECT_GE(score.covered, 170) << is_causal;
        EXPECT_NEAR(score.squares / score.calls, 1, 0.5) << is_causal;  // unbiased, but for squares below 0
      }
    }
  }
}

/// More keys than a rough centre takes, which share an offset; queries in few directions and noise.
TEST(AttentionAudit, ProjectedHeadsAndHeadsWithAnOffset) {
  for (const bool is_projected : {false, true}) {
    Case<double> c = gaussian_case({2, 1, 700, 700, 8, 8}, 0.4, false, 13);
    Rng rng(14);
    c.k.fill([&](std::int64_t, std::int64_t j, std::int64_t) {
      return rng.normal() + 2 + 0.001 * static_cast<double>(j);
    });
    c.q.fill([&](std::int64_t, std::int64_t, std::int64_t x) { return rng.normal() * (x < 3 ? 1 : 0.1); });
    const std::vector<double> taylor{1, 1, 0.5};
    std::vector<double> basis(8 * 3);
    for (std::size_t x = 0; x < 3; ++x) basis[x * 3 + x] = 1;
    almost_linear::Approximation approximation;
    approximation.coefficients = taylor.data();
    if (is_projected) approximation.rank = 3, approximation.basis = basis.data();
    DenseResults<double> exact = exact_results(c), r = DensePolynomial<double>(c, &approximation).results();
    const double k_truth = relative_error(r.dk, exact.dk), v_truth = relative_error(r.dv, exact.dv);
    Score q, k, v;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const Audit audit = Auditor<double>{c}.run(r, nullptr, {48, 48, false, seed}, &approximation);
      q.add(audit.q, relative_error(r.dq, exact.dq), 0.2);
      k.add(audit.k, k_truth, 0.2), v.add(audit.v, v_truth, 0.2);
    }
    for (const Score& score : {q, k, v}) {
      EXPECT_GE(score.near, 85) << is_projected;
      EXPECT_GE(score.covered, 80) << is_projected;
      EXPECT_NEAR(score.squares / score.calls, 1, 0.2) << is_projected;
    }
  }
}

/// Errors of rows of very different sizes, backward pass only.
TEST(AttentionAudit, ColumnsAndRowsOfAnExactForwardPass) {
  auto c = gaussian_case({4, 2, 500, 500, 8, 8}, 2, true, 5);
  c.glse.fill([rng = Rng(9)](auto...) mutable { return rng.normal(); });
  const DenseResults<double> exact = exact_results(c);
  DenseResults<double> r = exact;
  Rng rng(21);
  for (Array<double>* array : {&r.dq, &r.dk, &r.dv})
    for (std::int64_t h = 0; h < array->heads(); ++h)
      for (std::int64_t i = 0; i < array->row_count(); ++i) {
        const double size = 0.1 * std::exp(0.5 * rng.normal());
        for (std::int64_t x = 0; x < array->columns(); ++x)
          set(array->rows(), h, i, x, array->at(h, i, x) * (1 + size * rng.normal()));
      }
  Score q, k, v;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Audit audit = Auditor<double>{c}.run(r, &exact, {32, 64, false, seed});
    q.add(audit.q, relative_error(r.dq, exact.dq), 0.2);
    k.add(audit.k, relative_error(r.dk, exact.dk), 0.35),
        v.add(audit.v, relative_error(r.dv, exact.dv), 0.35);
  }
  for (const Score& score : {q, k, v}) {
    EXPECT_GE(score.covered, 160);
    EXPECT_GE(score.near, 180);
    EXPECT_NEAR(score.squares / score.calls, 1, 0.06);
  }
}

/// Runs tasks backwards, on threads in turn.
void backwards(void*, std::int64_t tasks, void (*body)(void*, std::int64_t, int), void* closure) {
  for (std::int64_t task = tasks; task-- > 0;) body(closure, task, static_cast<int>(task % 3));
}

TEST(AttentionAudit, SameBitsOnAllThreads) {
  const auto c = gaussian_case({4, 2, 2100, 2100, 8, 8}, 0.4, true, 6);
  const std::vector<double> coefficients{1, 1, 0.5, 1, 1, 0.5};
  almost_linear::Approximation approximation;
  approximation.coefficients = coefficients.data();
  DenseResults<double> r(c.shape);
  Rng rng(8);
  for (Array<double>* array : {&r.o, &r.dq, &r.dk, &r.dv}) array->fill_normal(rng);
  r.denominator.fill([](auto...) { return 1.0; });
  const DenseResults<double> forward = r;
  for (const DenseResults<double>* exact : {&forward, static_cast<const DenseResults<double>*>(nullptr)}) {
    const Audit one = Auditor<double>{c}.run(r, exact, {24, 24, false, 4}, &approximation);
    const Audit three =
        Auditor<double>{c, {3, backwards, nullptr}}.run(r, exact, {24, 24, false, 4}, &approximation);
    for (const auto which : {&Audit::o, &Audit::q, &Audit::k, &Audit::v}) {
      EXPECT_EQ((one.*which).value, (three.*which).value);
      EXPECT_EQ((one.*which).high, (three.*which).high);
    }
    EXPECT_GT(one.q.value, 0);
  }
}

TEST(AttentionAudit, NotFiniteResultsShow) {
  const auto c = gaussian_case({1, 1, 80, 80, 8, 8}, 1, false, 7);
  DenseResults<double> r = exact_results(c);
  r.dq.fill([](auto...) { return std::numeric_limits<double>::quiet_NaN(); });
  const Audit audit = Auditor<double>{c}.run(r, nullptr, {24, 24, false, 1});
  EXPECT_TRUE(std::isnan(audit.q.value));
  EXPECT_LT(audit.o.value, 1e-10);
}

}  // namespace

}  // namespace loipe::attention::testing
