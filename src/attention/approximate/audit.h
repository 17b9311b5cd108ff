// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/almost_linear.h"
#include "attention/approximate/report.h"
#include "attention/certificate/audit.h"
#include "attention/exact/arena.h"

namespace loipe::attention::approximate {

/// Fills in the measured errors of one head of keys with its readers: problems have kv_heads = 1.
template <class E>
class Audit {
 public:
  Audit() = default;
  /// For the heads of a problem of any number of heads.
  Audit(const Problem<E>& problem, int threads, Arena& arena);

  /// Sampled rows of O.
  void forward(const Problem<E>& head, Rows<const E> o, HeadReport& report, const Parallel& parallel) const;
  /// Sampled rows of dQ, and of O unless that is exact; sampled columns of dK and dV. After an approximate
  /// forward pass these have no exact normalisers: those of polynomials are estimated on the columns
  /// themselves, others are taken for exact if O is close, and else there are no columns. Needs
  /// report.method; o and lse are those of the forward pass.
  void backward(const Problem<E>& head, const Cotangents<E>& cotangents,
                const certificate::Approximate<E>& results, Rows<const E> lse,
                const certificate::Polynomial<E>& polynomial, HeadReport& report,
                const Parallel& parallel) const;

 private:
  std::span<std::byte> workspace_;
};

}  // namespace loipe::attention::approximate
