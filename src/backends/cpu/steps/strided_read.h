// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

/// Reads runs of a strided operand, in row-major order of a space, into contiguous memory.
class StridedRead {
 public:
  StridedRead(std::size_t element_size, std::int64_t offset, Shape space, Integers strides)
      : element_size_(element_size),
        offset_(offset),
        space_(std::move(space)),
        strides_(std::move(strides)) {}

  /// Elements start..start+count-1 of the space.
  void read(const std::byte* base, std::int64_t start, std::int64_t count, std::byte* to) const;

 private:
  template <class Element>
  void read_elements(const Element* from, std::int64_t start, std::int64_t count, Element* to) const;

  std::size_t element_size_;
  std::int64_t offset_;
  Shape space_;
  Integers strides_;
};

}  // namespace loipe::cpu
