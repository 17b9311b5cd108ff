// SPDX-License-Identifier: Apache-2.0
#include "attention/approximate/audit.h"

#include "attention/approximate/heads.h"

namespace loipe::attention::approximate {

namespace {

using certificate::Kind;

Measured measured(const certificate::Estimate& estimate) {
  if (estimate.kind == Kind::none) return {};
  return {estimate.value, estimate.low, estimate.high};
}

ColumnAudit column_audit(const certificate::Audit& audit) {
  if (audit.k.kind == Kind::none) return ColumnAudit::none;
  return audit.k.kind == Kind::sampled_columns ? ColumnAudit::exact_columns : ColumnAudit::pairs;
}

}  // namespace

template <class E>
Audit<E>::Audit(const Problem<E>& problem, int threads, Arena& arena) {
  if (problem.shape.kv_heads == 0) return;
  const std::size_t bytes = certificate::audit_workspace(some_heads(problem, {0, 1}), {}, threads);
  workspace_ = {arena.take<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
}

template <class E>
void Audit<E>::forward(const Problem<E>& head, Rows<const E> o, HeadReport& report,
                       const Parallel& parallel) const {
  report.o = measured(certificate::audit<E>(head, {}, {o, {}}, {}, {}, {}, parallel, workspace_).o);
}

template <class E>
void Audit<E>::backward(const Problem<E>& head, const Cotangents<E>& cotangents,
                        const certificate::Approximate<E>& results, const certificate::ExactForward<E>& exact,
                        const certificate::Polynomial<E>& polynomial, HeadReport& report,
                        const Parallel& parallel) const {
  const certificate::Audit audit =
      certificate::audit<E>(head, cotangents, results, exact, polynomial, {}, parallel, workspace_);
  if (audit.o.kind != Kind::none) report.o = measured(audit.o);
  report.dq = measured(audit.q);
  report.dk = measured(audit.k);
  report.dv = measured(audit.v);
  report.column_audit = static_cast<double>(column_audit(audit));
}

template class Audit<float>;
template class Audit<double>;

}  // namespace loipe::attention::approximate
