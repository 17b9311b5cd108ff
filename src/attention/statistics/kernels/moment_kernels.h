// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The hot loops of statistics, compiled once per instruction set in translation units that may include
// nothing but this header and *.inc files (backends/cpu/kernels/kernel_table.h says why).

namespace loipe::attention::statistics {

inline constexpr int kBlockRows = 64;  ///< rows of a block
inline constexpr int kPad = 8;         ///< its width is a multiple of that, filled with zeros

template <class T>
struct MomentKernels {
  /// moments[a][b] += sum over rows of block[row][a] block[row][b], for b / kPad >= a / kPad; the other half
  /// is left alone. block [kBlockRows][width], moments [width][width].
  void (*add_moments)(const T* block, std::ptrdiff_t width, double* moments);
  /// sum[column] += sum over rows.
  void (*add_rows)(const T* block, std::ptrdiff_t width, double* sum);
  /// norms[row] = sum of squares.
  void (*squared_norms)(const T* block, std::ptrdiff_t width, T* norms);
  /// Largest sum of squares of a row, off by less than (width + 8) roundings; NaN if a row has one.
  T (*largest_norm)(const T* block, std::ptrdiff_t width);
  /// The same of the rows of block times columns[width][count], count a multiple of kPad.
  T (*largest_projected_norm)(const T* block, std::ptrdiff_t width, const T* columns, std::ptrdiff_t count);
};

template <class T>
const MomentKernels<T>& baseline_moment_kernels();
template <class T>
const MomentKernels<T>& avx2_moment_kernels();

}  // namespace loipe::attention::statistics
