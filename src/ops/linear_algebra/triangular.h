// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise/family.h"

// Tools for ops on the last two axes of [batch..., n, m], and for directions in front of
// those, [K, batch..., n, m].

namespace loipe::ops {

/// Which triangle of a matrix is read, and what is solved.
struct Triangle {
  bool lower = true;
  bool transposed = false;     ///< a^T x = b
  bool unit_diagonal = false;  ///< the diagonal counts as 1
  Attributes attributes() const;
  static Triangle of(const Attributes& attributes);
  Triangle turned() const { return {lower, !transposed, unit_diagonal}; }
};

/// UserError unless the type is floating point of square matrices.
void expect_square_matrices(const TensorType& type);

/// op(a)^-1 v for all K directions by one solve: they become columns.
Value solve_directions(Builder& b, Value a, Value directions, const Triangle& triangle);

/// x with its last two axes exchanged.
Value transposed_matrices(Builder& b, Value x);

/// sum_j x_ij y_jk for each batch index; a letter in front of "ij,jk->ik" is an axis of
/// directions: einsum on matrices, "ij,Djk->Dik".
Value matrix_einsum(Builder& b, Value x, Value y, std::string_view spec);

/// The entries of [..., n, n] at or below the diagonal (or above), others 0.
Value kept_triangle(Builder& b, Value x, bool lower, bool with_diagonal);

/// Matrices that are far from singular.
Tensor draw_triangular(Rng& rng, const Shape& shape);

}  // namespace loipe::ops
