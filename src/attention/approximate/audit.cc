// SPDX-License-Identifier: Apache-2.0
#include "attention/approximate/audit.h"

#include "attention/approximate/heads.h"
#include "attention/approximate/settings.h"

namespace loipe::attention::approximate {

namespace {

using certificate::Kind;

Measured measured(const certificate::Estimate& estimate) {
  if (estimate.kind == Kind::none) return {};
  return {estimate.value, estimate.low, estimate.high};
}

ColumnAudit column_audit(Kind kind) {
  switch (kind) {
    case Kind::sampled_columns: return ColumnAudit::exact_columns;
    case Kind::approximate_columns: return ColumnAudit::approximate_columns;
    case Kind::sampled_pairs: return ColumnAudit::pairs;
    default: return ColumnAudit::none;
  }
}

/// Of each head. At 4,096 tokens that is about 5 % of the time of an exact backward pass.
constexpr certificate::Sampling kSampling{.rows = 32, .columns = 32};

/// Normalisers that are off by a part epsilon of themselves move exact columns by about that part. So they
/// serve where O, which shares their errors, is closer than this.
constexpr double kCloseForward = 0.05;

}  // namespace

template <class E>
Audit<E>::Audit(const Problem<E>& problem, int threads, Arena& arena) {
  if (problem.shape.kv_heads == 0) return;
  const std::size_t bytes = certificate::audit_workspace(some_heads(problem, {0, 1}), kSampling, threads);
  workspace_ = {arena.take<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
}

template <class E>
void Audit<E>::forward(const Problem<E>& head, Rows<const E> o, HeadReport& report,
                       const Parallel& parallel) const {
  report.o = measured(certificate::audit<E>(head, {}, {o, {}}, {}, {}, kSampling, parallel, workspace_).o);
}

template <class E>
void Audit<E>::backward(const Problem<E>& head, const Cotangents<E>& cotangents,
                        const certificate::Approximate<E>& results, Rows<const E> lse,
                        const certificate::Polynomial<E>& polynomial, HeadReport& report,
                        const Parallel& parallel) const {
  const auto run = [&](const certificate::Approximate<E>& audited, const certificate::ExactForward<E>& exact,
                       const certificate::Polynomial<E>& pairs) {
    return certificate::audit<E>(head, cotangents, audited, exact, pairs, kSampling, parallel, workspace_);
  };
  const auto set_columns = [&](const certificate::Audit& audit, ColumnAudit kind) {
    report.dk = measured(audit.k);
    report.dv = measured(audit.v);
    report.column_audit = static_cast<double>(kind);
  };
  if (report.method == static_cast<double>(Method::exact)) {
    const certificate::Audit all = run({{}, results.input}, {results.o, lse}, {});
    report.dq = measured(all.q);
    return set_columns(all, ColumnAudit::exact_columns);
  }
  if (polynomial.approximation != nullptr) {
    const certificate::Audit all = run(results, {}, polynomial);
    report.o = measured(all.o);
    report.dq = measured(all.q);
    return set_columns(all, column_audit(all.k.kind));
  }
  const certificate::Audit rows = run({results.o, {results.input.q, {}, {}, {}}}, {}, {});
  report.o = measured(rows.o);
  report.dq = measured(rows.q);
  if (!(report.o.value <= kCloseForward)) return set_columns({}, ColumnAudit::none);
  set_columns(run({{}, {{}, results.input.k, results.input.v, {}}}, {results.o, lse}, {}),
              ColumnAudit::approximate_columns);
}

template class Audit<float>;
template class Audit<double>;

}  // namespace loipe::attention::approximate
