// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The interface of the attention kernels: one tile of queries against one of keys, from
// packed memory. They are compiled once per instruction set, in translation units that may
// include nothing but this header and *.inc files (backends/cpu/kernels/kernel_table.h says why).
//
// Scores are in base 2: s = log2(e) x, with log2(e) and the scale already in the packed queries, so that
// exp(x - max) = 2^(s - max). head_size and value_size are padded with zeros to multiples of kGroup.
// What a product reads one number at a time lies in groups of kGroup rows or columns, so
// that it is read from front to back:
//   row groups     [rows / kGroup][columns][kGroup]
//   column groups  [columns / kGroup][rows][kGroup]

namespace loipe::attention {

inline constexpr int kGroup = 8;
inline constexpr int kKeyRows = 64;    ///< keys of a tile whose lanes are queries
inline constexpr int kQueryRows = 64;  ///< queries of a tile whose lanes are keys

/// Stands for the maximum of no score: finite, so that -inf minus it is -inf.
template <class T>
inline constexpr T kNoScore = T(-1e30);

/// Which scores of a tile count: low <= key - query <= high, positions within the tile, and the first
/// `keys` keys only.
struct Band {
  bool is_whole;  ///< all do; the rest is not looked at
  std::int32_t low, high;
};

/// Lanes are queries. Takes the tile's keys into the running softmax of each query.
template <class T>
struct ForwardTile {
  const T* q;         ///< [head_size][lanes]
  const T* k;         ///< row groups of kKeyRows rows, head_size columns
  const T* v;         ///< column groups of kKeyRows rows, value_size columns
  const T* additive;  ///< [kKeyRows][lanes], added to scores; null: none
  T* scores;          ///< [kKeyRows][lanes], scratch
  T* maximum;         ///< [lanes], of the scores so far
  T* sum;             ///< [lanes], of 2^(s - maximum)
  T* o;               ///< [value_size][lanes], of 2^(s - maximum) v
  std::ptrdiff_t head_size, value_size, keys;
  Band band;
};

/// ForwardTile and its tangent: s' = <tq, k> + <q, tk> + tangent_additive.
template <class T>
struct JvpTile {
  ForwardTile<T> primal;
  const T* tq;                ///< as q; null: 0
  const T* tk;                ///< as k; null: 0
  const T* tv;                ///< as v; null: 0
  const T* tangent_additive;  ///< as additive; null: 0
  T* tangent_scores;          ///< scratch, as scores
  T* tangent_sum;             ///< [lanes], of 2^(s - maximum) s'
  T* o_of_scores;             ///< [value_size][lanes], of 2^(s - maximum) s' v
  T* o_of_values;             ///< [value_size][lanes], of 2^(s - maximum) tv
};

/// Lanes are keys. With w = 2^(s - maximum) and dx = w (<g, v> - mean), adds the tile's part to
/// dv = sum_q w g, dk = sum_q dx q, dq = sum_k dx k. What is null is left out;
/// dx null: dv alone.
template <class T>
struct BackwardTile {
  const T* q;   ///< row groups of kQueryRows rows, head_size columns
  const T* g;   ///< row groups of kQueryRows rows, value_size columns
  const T* qc;  ///< the same in column groups
  const T* gc;
  const T* kt;        ///< [head_size][lanes]
  const T* vt;        ///< [value_size][lanes]
  const T* k;         ///< [lanes][head_size]
  const T* maximum;   ///< [kQueryRows]
  const T* mean;      ///< [kQueryRows]
  const T* additive;  ///< [kQueryRows][lanes]; null: none
  T* weights;         ///< [kQueryRows][lanes], scratch
  T* dx;              ///< [kQueryRows][lanes], scratch
  T* dk;              ///< [head_size][lanes]
  T* dv;              ///< [value_size][lanes]
  T* dq;              ///< [kQueryRows][head_size]
  std::ptrdiff_t head_size, value_size, queries, keys;
  Band band;
};

/// The tangent of BackwardTile. Here w = 2^(s - maximum) / sum, and the results are those of the tangents
/// alone: with x' = log(2) s', w' = w (x' - tangent_mean_score), dx' = w' (<g, v> - mean) +
/// w (<tg, v> + <g, tv> - tangent_mean),
///   dv = sum_q w' g + w tg,  dk = sum_q dx' q + dx tq,  dq = sum_k dx' k + dx tk.
template <class T>
struct BackwardTangentTile {
  BackwardTile<T> primal;
  const T *tq, *tg, *tqc, *tgc, *tkt, *tvt, *tk;  ///< as those without t; none is null
  const T* tangent_additive;                      ///< as additive; null: 0
  const T* reciprocal_sum;                        ///< [kQueryRows]
  const T* tangent_mean_score;                    ///< [kQueryRows]
  const T* tangent_mean;                          ///< [kQueryRows]
  T* tangent_weights;                             ///< scratch, as weights
  T* tangent_dx;                                  ///< scratch, as dx
};

template <class T>
struct TileKernels {
  int lanes;
  void (*forward)(const ForwardTile<T>&);
  void (*jvp)(const JvpTile<T>&);
  void (*backward)(const BackwardTile<T>&);
  void (*backward_tangent)(const BackwardTangentTile<T>&);
  /// out[column][row] = in[row][column]; both extents are multiples of 4.
  void (*transpose)(const T* in, std::ptrdiff_t in_row, T* out, std::ptrdiff_t out_row, std::ptrdiff_t rows,
                    std::ptrdiff_t columns);
};

struct AttentionKernels {
  TileKernels<float> f32;
  TileKernels<double> f64;

  template <class T>
  const TileKernels<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float)) return f32;
    else return f64;
  }
};

const AttentionKernels& baseline_attention_kernels();
const AttentionKernels& avx2_attention_kernels();
const AttentionKernels& avx512_attention_kernels();

}  // namespace loipe::attention
