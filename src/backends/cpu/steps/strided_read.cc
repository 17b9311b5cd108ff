// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/strided_read.h"

#include <algorithm>

#include "backends/cpu/steps/element.h"
#include "backends/cpu/steps/transpose.h"

namespace loipe::cpu {

namespace {

template <class Element>
void read_run(const Element* from, std::int64_t stride, std::int64_t count, Element* to) {
  if (stride == 1) std::copy_n(from, count, to);
  else if (stride == 0) std::fill_n(to, count, *from);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

}  // namespace

StridedRead::StridedRead(std::size_t element_size, std::int64_t offset, Shape space, Integers strides,
                         const KernelTable& kernels)
    : element_size_(element_size),
      offset_(offset),
      space_(std::move(space)),
      strides_(std::move(strides)),
      kernels_(kernels) {
  const std::size_t rank = space_.size();
  is_transposed_ =
      element_size_ >= sizeof(float) && rank >= 2 && strides_[rank - 2] == 1 && strides_[rank - 1] > 1;
}

void StridedRead::read(const std::byte* base, std::int64_t start, std::int64_t count, std::byte* to) const {
  visit_element(element_size_, [&]<class Element>(Element) {
    read_elements(reinterpret_cast<const Element*>(base) + offset_, start, count,
                  reinterpret_cast<Element*>(to));
  });
}

/// Where the row starts, counted over all axes but the last.
std::int64_t StridedRead::row_position(std::int64_t row) const {
  std::int64_t position = 0;
  for (std::size_t axis = space_.size() - 1; axis-- > 0; row /= space_[axis])
    position += row % space_[axis] * strides_[axis];
  return position;
}

template <class Element>
void StridedRead::read_elements(const Element* from, std::int64_t start, std::int64_t count,
                                Element* to) const {
  if (space_.empty()) {
    *to = *from;
    return;
  }
  const std::size_t inner = space_.size() - 1;
  const std::int64_t extent = space_[inner], stride = strides_[inner];
  std::int64_t row = start / extent, column = start % extent;
  bool repeats = false;  // the row before was read whole and is the same
  while (count > 0) {
    std::int64_t rows = 1, run = std::min(count, extent - column);
    if (repeats && row % space_[inner - 1] != 0) {
      std::copy_n(to - extent, run, to);
    } else if (is_transposed_ && run == extent && count >= 2 * extent) {
      rows = std::min(count / extent, space_[inner - 1] - row % space_[inner - 1]);
      run = rows * extent;
      if constexpr (kHasTranspose<Element>)
        transpose(from + row_position(row), stride, to, extent, rows, extent, kernels_);
    } else {
      read_run(from + row_position(row) + column * stride, stride, run, to);
    }
    repeats = inner > 0 && strides_[inner - 1] == 0 && run == extent;
    to += run;
    count -= run;
    row += rows;
    column = 0;
  }
}

}  // namespace loipe::cpu
