// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ops/attention/attention_call.h"

// The trusted evaluation of attention and its derivatives: whole matrices over queries and
// keys of one head, in float64. Formulas: docs/theory/ops.md.

namespace loipe::ops {

/// Rows times columns, row-major.
struct AttentionMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> entries;

  AttentionMatrix() = default;
  AttentionMatrix(std::int64_t r, std::int64_t c)
      : rows(r), columns(c), entries(static_cast<std::size_t>(r * c), 0.0) {}
  double& at(std::int64_t i, std::int64_t j) { return entries[static_cast<std::size_t>(i * columns + j)]; }
  double at(std::int64_t i, std::int64_t j) const {
    return entries[static_cast<std::size_t>(i * columns + j)];
  }
};

/// Tangents of q, k, v, bias; those left out are zero.
struct AttentionTangents {
  AttentionMatrix q, k, v, bias;
};

/// Derivatives by q, k, v, bias.
using AttentionGradients = AttentionTangents;

/// One head of queries with its keys.
class AttentionHead {
 public:
  AttentionHead(const AttentionCall& call, std::span<const Tensor* const> operands, std::int64_t head,
                std::int64_t group);

  AttentionMatrix result() const;
  /// Of `along`, named by letters: its directions of number `direction` for this head.
  AttentionTangents tangents(std::span<const Tensor* const> directions, std::string_view along,
                             std::int64_t direction) const;
  /// The rows of this head of [L, heads, groups, queries, value size + 1].
  AttentionMatrix cotangents(const Tensor& directions, std::int64_t direction) const;

  AttentionMatrix jvp(const AttentionTangents& t) const;
  /// d/ds of jvp(t) along s.
  AttentionMatrix jvp_jvp(const AttentionTangents& t, const AttentionTangents& s) const;
  AttentionGradients vjp(const AttentionMatrix& cotangents) const;
  /// d/dt of vjp(cotangents) along t.
  AttentionGradients vjp_jvp(const AttentionMatrix& cotangents, const AttentionTangents& t) const;

 private:
  AttentionMatrix logit_tangents(const AttentionTangents& t) const;
  AttentionMatrix second_logit_tangents(const AttentionTangents& t, const AttentionTangents& s) const;
  AttentionMatrix centred_logits(AttentionMatrix tangents, std::vector<double>* means) const;
  AttentionMatrix weights_times(const AttentionMatrix& factor) const;
  AttentionMatrix cotangents_of_weights(const AttentionMatrix& cotangents,
                                        const AttentionMatrix& values) const;
  AttentionMatrix with_lse(const AttentionMatrix& output, const std::vector<double>& lse) const;

  const AttentionCall& call_;
  std::int64_t head_, group_;
  AttentionMatrix q_, k_, v_;
  AttentionMatrix weights_;  ///< p
  std::vector<double> lse_;
};

}  // namespace loipe::ops
