// SPDX-License-Identifier: Apache-2.0
#include "attention/statistics/moments.h"

#include <cstring>

namespace loipe::attention::statistics {

namespace {

template <class T>
struct Vector {
  typedef T Type __attribute__((vector_size(16)));
};

/// A tile of 4 rows of moments and kPad columns, whose sums stay in registers.
template <class T>
void add_tile(const T* block, std::size_t width, std::size_t a, std::size_t b, T* moments) {
  using V = typename Vector<T>::Type;
  constexpr std::size_t kRows = 4, kVectors = kPad * sizeof(T) / sizeof(V), kLanes = sizeof(V) / sizeof(T);
  constexpr std::size_t kAtOnce = kVectors > 2 ? 2 : kRows;  // of 16 registers
  for (std::size_t first = 0; first < kRows; first += kAtOnce) {
    V sums[kAtOnce][kVectors] = {};
    for (std::size_t row = 0; row < kBlockRows; ++row) {
      const T* const at = block + row * width;
      V columns[kVectors];
      std::memcpy(columns, at + b, sizeof(columns));
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kAtOnce; ++r) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) sums[r][v] += at[a + first + r] * columns[v];
      }
    }
    for (std::size_t r = 0; r < kAtOnce; ++r)
      for (std::size_t v = 0; v < kVectors; ++v)
        for (std::size_t l = 0; l < kLanes; ++l)
          moments[(a + first + r) * width + b + v * kLanes + l] += sums[r][v][l];
  }
}

}  // namespace

template <class T>
void add_moments(const T* block, std::int64_t width, T* moments) {
  const auto w = static_cast<std::size_t>(width);
  for (std::size_t a = 0; a < w; a += 4)
    for (std::size_t b = a / kPad * kPad; b < w; b += kPad) add_tile(block, w, a, b, moments);
}

template <class T>
void squared_norms(const T* block, std::int64_t width, double* norms) {
  for (std::int64_t row = 0; row < kBlockRows; ++row) {
    double sums[kPad] = {};  // side by side, so that they are vectors
    for (std::int64_t c = 0; c < width; c += kPad)
      for (std::int64_t l = 0; l < kPad; ++l) {
        const double x = static_cast<double>(block[row * width + c + l]);
        sums[l] += x * x;
      }
    double sum = 0;
    for (const double part : sums) sum += part;
    norms[row] = sum;
  }
}

template void add_moments(const float*, std::int64_t, float*);
template void add_moments(const double*, std::int64_t, double*);
template void squared_norms(const float*, std::int64_t, double*);
template void squared_norms(const double*, std::int64_t, double*);

}  // namespace loipe::attention::statistics
