// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/approximate_attention.h>
#include <loipe/trace.h>

#include <optional>
#include <vector>

namespace loipe {

/// Which keys a query looks at, and how.
struct AttentionOptions {
  bool causal = false;                  ///< query i sees keys j <= i
  std::optional<double> scale = {};     ///< of the products q . k; absent: 1 / sqrt(head size)
  std::int64_t window = 0;              ///< above 0: query i sees keys with |i - j| < window
  std::optional<Traced> key_mask = {};  ///< bool [keys], or [key heads, keys]: keys that may be seen
  /// Added to scale q . k: [queries, keys] or [heads, queries, keys], extents but the last may be 1.
  std::optional<Traced> bias = {};
  /// None: exact. One for all heads, or one for each head of keys. First derivatives in reverse use them; other
  /// derivatives, and the reference back end, are exact.
  std::vector<AttentionApproximation> approximation = {};
};

struct AttentionResult {
  Traced output;  ///< [queries, value size], with heads in front where q has them
  Traced lse;     ///< logarithms of the sums that the weights were divided by, [queries]
};

/// softmax(scale q k^T + bias) v, row by row, in memory linear in queries and keys. Shapes
/// q [heads, queries, d], k [key heads, keys, d], v [key heads, keys, e], or all without
/// heads; head h of q reads head h * key heads / heads, so heads must be a multiple of key
/// heads. A query that sees no key gives 0 and lse -inf, and no derivative passes there.
/// Derivatives to the second are in linear memory too, but for those by the bias.
/// UserError where shapes do not fit.
Traced attention(const Traced& q, const Traced& k, const Traced& v, const AttentionOptions& options = {});
AttentionResult attention_with_lse(const Traced& q, const Traced& k, const Traced& v,
                                   const AttentionOptions& options = {});

}  // namespace loipe
