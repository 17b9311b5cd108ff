// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/strided_view.h"
#include "base/check.h"

namespace loipe::cpu {

/// A loop nest over N operands: at index i operand k is at sum strides[k][axis]*i[axis].
template <std::size_t N>
struct Nest {
  Shape extents;
  std::array<Integers, N> strides;

  std::int64_t count() const { return element_count(extents); }
  void append(std::int64_t extent, const std::array<std::int64_t, N>& s) {
    extents.push_back(extent);
    for (std::size_t k = 0; k < N; ++k) strides[k].push_back(s[k]);
  }
  void collapse_axes() {
    std::array<Integers*, N> all;
    for (std::size_t k = 0; k < N; ++k) all[k] = &strides[k];
    collapse(extents, all);
    require(extents.size() <= kMaxRank, "a loop nest has too many axes");
  }
  static constexpr std::size_t kMaxRank = 64;
};

/// Walks a nest in row-major order from any point on.
template <std::size_t N>
class NestCursor {
 public:
  NestCursor(const Nest<N>& nest, std::int64_t start) : nest_(nest) {
    positions_.fill(0);
    for (std::size_t axis = nest.extents.size(); axis-- > 0;) {
      index_[axis] = start % nest.extents[axis];
      start /= nest.extents[axis];
      for (std::size_t k = 0; k < N; ++k) positions_[k] += index_[axis] * nest.strides[k][axis];
    }
  }

  std::int64_t at(std::size_t operand) const { return positions_[operand]; }

  void next() {
    for (std::size_t axis = nest_.extents.size(); axis-- > 0;) {
      for (std::size_t k = 0; k < N; ++k) positions_[k] += nest_.strides[k][axis];
      if (++index_[axis] < nest_.extents[axis]) return;
      for (std::size_t k = 0; k < N; ++k) positions_[k] -= nest_.strides[k][axis] * nest_.extents[axis];
      index_[axis] = 0;
    }
  }

 private:
  const Nest<N>& nest_;
  std::array<std::int64_t, N> positions_;
  std::array<std::int64_t, Nest<N>::kMaxRank> index_;
};

}  // namespace loipe::cpu
