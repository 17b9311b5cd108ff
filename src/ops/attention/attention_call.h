// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "attention/approximate/settings.h"
#include "ir/op_def.h"

// What all ops of attention have in common. With x_ij = scale <q_i, k_j> + bias_ij over the
// keys j that query i may look at,
//
//   p_ij = exp(x_ij - lse_i),  lse_i = log sum_j exp(x_ij),  o_i = sum_j p_ij v_j.
//
// Operands q [B, G, n, d], k [B, m, d], v [B, m, e]: B heads of keys, G heads of queries for
// each of them. Then, where the attributes `mask` and `bias` say so, mask (bool, [B or 1, m]:
// which keys may be looked at) and bias [B or 1, G or 1, n or 1, m]. The result [B, G, n, e + 1]
// is o with lse as its last column; a query that may look at no key has o = 0, lse = -inf.
// Derivatives of the op are ops again, linear in their directions, of which each has L.
//
// The attribute `approximate`, if there, allows evaluations by kernels to stay off this value, in
// the value itself and in its VJP: attention::approximate::Settings as text, for all heads, or one for each head
// of keys with ';' between. The definition, and the reference evaluation, stay exact.

namespace loipe::ops {

/// An operand to differentiate by: 'q', 'k', 'v', 'b' (the bias).
using AttentionLetter = char;

/// Shapes and attributes of one node.
struct AttentionCall {
  std::int64_t heads, groups, queries, keys, head_size, value_size;
  DType dtype;
  double scale;
  bool is_causal;                         ///< query i may look at keys j <= i
  std::int64_t window;                    ///< 0: no limit; else at keys with |i - j| < window
  std::optional<std::size_t> mask, bias;  ///< operand positions
  Shape bias_shape;
  std::size_t primal_count;  ///< operands q, k, v, mask, bias
  /// Of the attribute `approximate`: one for each head of keys; empty: exact.
  std::vector<attention::approximate::Settings> approximations;

  /// UserError where the first operands do not fit together.
  static AttentionCall of(std::span<const TensorType* const> operands, const Attributes& attributes);

  /// By positions alone, without the mask.
  bool allows(std::int64_t query, std::int64_t key) const {
    if (is_causal && key > query) return false;
    return window == 0 || (key > query - window && key < query + window);
  }
  Shape result() const { return {heads, groups, queries, value_size + 1}; }
  Shape shape_of(AttentionLetter letter) const;
  std::size_t operand_of(AttentionLetter letter) const;
  AttentionLetter letter_of(std::size_t operand) const;
  /// Of all operands that `letters` names.
  std::int64_t elements(std::string_view letters) const;
  /// Of queries with keys.
  std::int64_t pairs() const;
};

/// The attribute that names operands; UserError unless it is one of "q", "k", "v", "qkv", "b".
std::string attention_letters(const AttentionCall& call, const Attributes& attributes, std::string_view name);

/// Directions in the shape of the result or of operands: [L, shape...], with one L for all from `first` on.
/// UserError that names the operand otherwise.
std::int64_t expect_directions(const InferContext& c, std::size_t first, std::span<const Shape> shapes);

}  // namespace loipe::ops
