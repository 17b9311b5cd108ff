// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/exact/kernels/attention_kernels.h"

// The interface of the kernels of clustered attention, compiled once per instruction set like those of exact
// attention (attention/exact/kernels/attention_kernels.h), with whose layouts and base 2 they work. Lanes are
// queries, so that a cluster may have any number of keys; they need not be neighbours.

namespace loipe::attention::clustered {

/// Rows of a tile at most; they are padded with zeros to a multiple of kGroup.
inline constexpr int kTileRows = 64;

/// Derivatives of `lanes` queries against up to kTileRows rows, which are keys or means of clusters. With
/// w = 2^(<k, q> + additive - lse) and dx = w (<v, g> - mean), adds the tile's part to dq = sum_rows dx k,
/// dk = sum_lanes dx q, dv = sum_lanes w g, mass = sum_rows w. mass, dk and dv may be null; dx
/// null: dv and mass alone.
template <class T>
struct PairTile {
  const T* q;         ///< [head_size][lanes]
  const T* g;         ///< [value_size][lanes]
  const T* q_rows;    ///< [lanes][head_size], the same numbers
  const T* g_rows;    ///< [lanes][value_size]
  const T* lse;       ///< [lanes]
  const T* mean;      ///< [lanes]
  const T* k;         ///< row groups, head_size columns
  const T* v;         ///< row groups, value_size columns
  const T* kc;        ///< k in column groups of kTileRows rows
  const T* additive;  ///< [kTileRows][lanes], added to the scores; null: none
  const T* until;     ///< [lanes]: a lane sees the rows below until[lane], and those
  const T* from;      ///< [lanes]: not below from[lane]
  T* weights;         ///< [kTileRows][lanes], scratch
  T* dx;              ///< [kTileRows][lanes], scratch
  T* mass;            ///< [lanes]
  T* dq;              ///< [head_size][lanes]
  T* dk;              ///< [rows][head_size]
  T* dv;              ///< [rows][value_size]
  std::ptrdiff_t head_size, value_size;
  std::ptrdiff_t rows;        ///< padded
  std::ptrdiff_t real_rows;   ///< those that are no padding, which mass is of
  std::ptrdiff_t whole_rows;  ///< all lanes see the first ones: there until and from are not looked at
};

/// Ranks the clusters for each query and takes those above its threshold.
template <class T>
struct SelectTile {
  const T* q;            ///< [head_size][lanes]
  const T* k;            ///< mean keys in row groups, head_size columns
  const T* rank;         ///< [rows], added to the scores; -inf: never taken
  const T* count;        ///< [rows]: allowed keys; 0 for those never taken
  const T* log_count;    ///< [rows], base 2
  T wanted;              ///< so many keys, or all: the threshold is about the largest that gives as many
  const T* threshold;    ///< [lanes], in place of what `wanted` gives; may be null
  T* scores;             ///< [rows][lanes], scratch
  std::uint64_t* taken;  ///< [rows], result: bit l says that lane l takes the row
  T* additive;           ///< [rows][lanes], result: log_count, or -inf where the row is taken
  std::ptrdiff_t head_size, rows;
};

/// Raises best[lane] to the largest <x, c> - half_square over rows and notes which row that is.
template <class T>
struct NearestTile {
  const T* x;            ///< [features][lanes]
  const T* c;            ///< row groups, features columns
  const T* half_square;  ///< [rows]
  T* best;               ///< [lanes]
  T* index;              ///< [lanes], a whole number
  T first;               ///< index of row 0
  std::ptrdiff_t features, rows;
};

/// squares[lane] = |L^T k|^2 + value_weight |v|^2.
template <class T>
struct SquareTile {
  const T* k;       ///< [head_size][lanes]
  const T* v;       ///< [value_size][lanes]
  const T* factor;  ///< L^T in row groups, head_size columns
  T value_weight;
  T* squares;  ///< [lanes]
  std::ptrdiff_t head_size, value_size;
};

/// Rows of `count` slots, 0 for the other lanes, and their transpose.
template <class T>
struct GatherTile {
  const T* from;              ///< [..][width]
  const std::int32_t* slots;  ///< [count]
  T* rows;                    ///< [lanes][width]
  T* transposed;              ///< [width][lanes]
  std::ptrdiff_t width, count;
};

/// to[slots[lane]] += column `lane` of sums.
template <class T>
struct ScatterTile {
  const T* sums;              ///< [width][lanes]
  const std::int32_t* slots;  ///< [count]
  T* to;                      ///< [..][width]
  T* rows;                    ///< [lanes][width], scratch
  std::ptrdiff_t width, count;
};

template <class T>
struct ClusterTileKernels {
  int lanes;
  void (*backward)(const PairTile<T>&);
  void (*select)(const SelectTile<T>&);
  void (*nearest)(const NearestTile<T>&);
  void (*squares)(const SquareTile<T>&);
  void (*gather)(const GatherTile<T>&);
  void (*scatter)(const ScatterTile<T>&);
};

struct ClusterKernels {
  ClusterTileKernels<float> f32;
  ClusterTileKernels<double> f64;

  template <class T>
  const ClusterTileKernels<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float)) return f32;
    else return f64;
  }
};

const ClusterKernels& baseline_cluster_kernels();
const ClusterKernels& avx2_cluster_kernels();
const ClusterKernels& avx512_cluster_kernels();

}  // namespace loipe::attention::clustered
