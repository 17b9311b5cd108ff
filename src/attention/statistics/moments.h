// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace loipe::attention::statistics {

inline constexpr std::int64_t kBlockRows = 64;  ///< rows of a block
inline constexpr std::int64_t kPad = 8;         ///< its width is a multiple of that, filled with zeros

/// moments[a][b] += sum over rows of block[row][a] block[row][b], for b / kPad >= a / kPad; the other half is
/// left alone. block [kBlockRows][width], moments [width][width].
template <class T>
void add_moments(const T* block, std::int64_t width, T* moments);

/// norms[row] = sum of squares of block[row], in f64.
template <class T>
void squared_norms(const T* block, std::int64_t width, double* norms);

}  // namespace loipe::attention::statistics
