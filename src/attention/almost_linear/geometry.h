// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/almost_linear.h"
#include "attention/almost_linear/kernels/linear_kernels.h"
#include "attention/almost_linear/monomial_table.h"
#include "attention/exact/arena.h"
#include "attention/exact/packing.h"

namespace loipe::attention::almost_linear {

/// The kernels for the running CPU (base/simd_level.h).
const Kernels& kernels_of_this_cpu();

/// Extents as the kernels have them, and how tokens are cut into panels and chunks. All follow from the shape
/// and the approximation alone.
template <class E>
struct Geometry {
  const Problem<E>& problem;
  const Approximation& approximation;
  const KernelsOf<E>& kernels;
  MonomialTable<E> table;
  std::int64_t head_size, size;       ///< of heads, and of what features are made of; padded
  std::int64_t value_size, pitch;     ///< padded; and one column more, of ones or of their cotangents
  std::int64_t lanes, chunk, panels;  ///< tokens of a panel, of a chunk; panels of a chunk
  std::int64_t query_chunks, key_chunks;

  Geometry(const Problem<E>& p, const Approximation& a, int feature_degree, Arena& arena)
      : problem(p),
        approximation(a),
        kernels(kernels_of_this_cpu().of<E>()),
        table(a.basis != nullptr ? a.rank : p.shape.head_size, feature_degree, arena),
        head_size(round_up(p.shape.head_size, kColumnGroup)),
        size(round_up(table.monomials().size, kColumnGroup)),
        value_size(round_up(p.shape.value_size, kColumnGroup)),
        pitch(value_size + 1),
        lanes(kernels.lanes),
        chunk(tokens_of_chunk(table.count())),
        panels(chunk / lanes),
        query_chunks(divide_up(p.shape.queries, chunk)),
        key_chunks(divide_up(p.shape.keys, chunk)) {}

  bool is_causal() const { return problem.mask.is_causal; }
  bool is_projected() const { return approximation.basis != nullptr; }
  std::int64_t coordinates() const { return table.monomials().size; }
  std::int64_t state_size() const { return table.count() * pitch; }
  std::int64_t panel_of(std::int64_t rows) const { return rows * lanes; }

 private:
  /// A state costs a chunk as much as so many pairs of each of its tokens: many features, long chunks.
  static std::int64_t tokens_of_chunk(std::int64_t features) {
    return features <= 512 ? 64 : features <= 2048 ? 128 : features <= 16384 ? 256 : 512;
  }
};

}  // namespace loipe::attention::almost_linear
