// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

/// Reads runs of a strided operand, in row-major order of a space, into contiguous memory.
class StridedRead {
 public:
  StridedRead(std::size_t element_size, std::int64_t offset, Shape space, Integers strides,
              const KernelTable& kernels);

  /// Elements start..start+count-1 of the space.
  void read(const std::byte* base, std::int64_t start, std::int64_t count, std::byte* to) const;

  /// The operand's neighbours lie along the axis before the last: whole rows are read
  /// by transposing, which is worth while for several at a time.
  bool is_transposed() const { return is_transposed_; }

 private:
  template <class Element>
  void read_elements(const Element* from, std::int64_t start, std::int64_t count, Element* to) const;
  std::int64_t row_position(std::int64_t row) const;

  std::size_t element_size_;
  std::int64_t offset_;
  Shape space_;
  Integers strides_;
  const KernelTable& kernels_;
  bool is_transposed_;
};

}  // namespace loipe::cpu
