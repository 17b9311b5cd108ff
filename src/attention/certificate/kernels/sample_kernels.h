// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The kernels of an audit: a block of rows that stream by against a panel of samples, whose columns are the
// lanes of vectors. Rows are keys (a) and values (b) where samples are queries and cotangents, or the other
// way round. They are compiled once per instruction set, in translation units that may include nothing but
// headers like this and *.inc files (backends/cpu/kernels/kernel_table.h says why).

namespace loipe::attention::certificate {

inline constexpr int kBlockRows = 64;

/// Scores are s[row][lane] = <a[row], sample_a[lane]>, in base 2, dP[row][lane] = <b[row], sample_b[lane]>.
template <class T>
struct SampleTile {
  const T *a, *b;                ///< [kBlockRows][a_width], [kBlockRows][b_width]; widths multiples of 8
  const T *sample_a, *sample_b;  ///< [a_width][lanes], [b_width][lanes]; sample_b null: no dP
  std::ptrdiff_t a_width, b_width, rows;  ///< rows <= kBlockRows count
  const std::uint8_t* row_is_allowed;     ///< [rows]; null: all are
  const T *first, *last;                  ///< [lanes]: first <= row <= last count; null: all do
  T *weights, *dx;                        ///< [kBlockRows][lanes], scratch, and one element more
};

/// Weights 2^(s - maximum) with the running maximum of each lane: sums of w, w b, w dP, w a, w dP a.
template <class T>
struct OnlineTile {
  SampleTile<T> tile;
  T *maximum, *sum, *sum_dp;  ///< [lanes]
  T* sum_b;                   ///< [b_width][lanes]
  T *sum_a, *sum_dp_a;        ///< [a_width][lanes]; unused without sample_b
};

/// Weights w = 2^(s - shift), dx = w (dP - mean), with shift and mean of rows or of lanes: sums of w b, dx a.
template <class T>
struct KnownTile {
  SampleTile<T> tile;
  const T *row_shift, *row_mean;    ///< [kBlockRows]; null: those of lanes
  const T *lane_shift, *lane_mean;  ///< [lanes]
  T *sum_b, *sum_a;                 ///< [b_width][lanes], [a_width][lanes]; null: left out
  const T* lane_factor;             ///< [lanes]
  T* row_sum;                       ///< [kBlockRows]: += sum over lanes of lane_factor w; null: left out
};

/// What exact and polynomial attention differ by for sampled queries, in pairs of lanes (0, 1), (2, 3), ...:
/// with x = ln 2 s, u = 2^(s - shift) - P(x) / denominator and t = 2^(s - shift) (dP - mean) - P'(x) /
/// denominator (dP - approximate_mean), exp(x) in place of P and P' where near_first <= row <= near_last.
template <class T>
struct PairTile {
  SampleTile<T> tile;
  const T *lane_shift, *lane_mean;                     ///< [lanes]
  const T *reciprocal_denominator, *approximate_mean;  ///< [lanes]
  const T *near_first, *near_last;                     ///< [lanes]; null: none
  const T *coefficients, *derivative;                  ///< [degree + 1] both
  int degree;
  const T *lane_b, *lane_a;  ///< [lanes][b_width], [lanes][a_width], weighted: what u and t are multiplied by
  T *difference_b,
      *difference_a;  ///< [kBlockRows][b_width], [kBlockRows][a_width]: += sums over lanes; may be null
  /// [lanes]: sums over rows of u^2, u u of the next lane, and of t alike; rows beyond those that count
  /// may be written to in the differences.
  double *square_u, *cross_u, *square_t, *cross_t;
};

/// What exact and polynomial attention differ by for sampled keys, rows being queries: with the names of
/// PairTile, u and t of sampled keys, summed over queries with b and a. The exact normaliser of a query is
/// the polynomial's over the mean of P / exp, weighted by exp, which is taken over the lanes with
/// lane_factor.
template <class T>
struct DifferenceTile {
  SampleTile<T> tile;
  const T *row_reciprocal, *row_mean;  ///< [kBlockRows]: 1 / denominator, approximate mean
  const T* lane_factor;                ///< [lanes]
  const T* sample_projected;        ///< [a_width][lanes], P takes scores with these; null: those of sample_a
  const T *near_first, *near_last;  ///< [lanes]; null: none
  const T *coefficients, *derivative;  ///< [degree + 1] both
  int degree;
  bool is_paper;  ///< P' is P: then differences t have lost as much as u to the estimated normaliser
  T *slopes, *exponentials, *projected;  ///< [kBlockRows][lanes], scratch
  T *sum_b, *sum_a;                      ///< [b_width][lanes] of u b, [a_width][lanes] of t a
  T* sum_slopes_a;  ///< with sample_projected: of what t takes away, which sum_a then has not
};

template <class T>
struct SampleKernels {
  int lanes;
  void (*online)(const OnlineTile<T>&);
  void (*known)(const KnownTile<T>&);
  void (*pairs)(const PairTile<T>&);
  void (*differences)(const DifferenceTile<T>&);
};

template <class T>
const SampleKernels<T>& baseline_sample_kernels();
template <class T>
const SampleKernels<T>& avx2_sample_kernels();
template <class T>
const SampleKernels<T>& avx512_sample_kernels();

}  // namespace loipe::attention::certificate
