// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/approximate_attention.h>
#include <loipe/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/approximate/settings.h"
#include "attention/problem.h"

namespace loipe {

/// One attention and what its gradients are asked for.
struct AttentionRequest {
  attention::Shape shape{};
  double scale = 1;
  bool is_causal = false;
  std::int64_t window = 0;             ///< 0: none
  std::vector<std::uint8_t> key_mask;  ///< [keys], 1: may be looked at; empty: all may
  DType dtype = DType::f32;
  int threads = 1;
  attention::approximate::Settings settings{};  ///< of all heads
  /// Not empty: a polynomial in these powers of the logits, as they are, takes the place of exp.
  std::vector<double> polynomial;
  std::int64_t repetitions = 1;  ///< runs, of which the median time is told
};

/// Q [heads, queries, head_size], K [kv_heads, keys, head_size], V [kv_heads, keys, value_size],
/// G [heads, queries, value_size], all of the request's dtype.
struct AttentionInputs {
  Tensor q, k, v, g;
};

struct AttentionGradients {
  Tensor o, lse;                                  ///< [heads, queries, value_size], [heads, queries]
  Tensor dq, dk, dv;                              ///< as Q, K, V
  std::optional<Tensor> denominator = {};         ///< [heads, queries], of a polynomial
  std::vector<AttentionHeadReport> reports = {};  ///< of each head of keys; none for a polynomial
  double forward_seconds = 0, backward_seconds = 0;
};

/// Inputs, results and what is needed in between, known before the run.
std::size_t attention_peak_bytes(const AttentionRequest& request);
/// Lets plans that choose their degree have less memory, until the peak is within the limit or they have none
/// to give.
void keep_within(AttentionRequest& request, std::size_t limit);

/// Exact, or as the settings or the polynomial say; the same bits for every number of threads.
AttentionGradients attention_gradients(const AttentionRequest& request, const AttentionInputs& inputs);

/// What would be done for each head of keys, from the logits of the inputs; nothing but these is computed.
std::vector<AttentionHeadReport> planned_attention(const AttentionRequest& request,
                                                   const AttentionInputs& inputs);

}  // namespace loipe
