// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/strided_read.h"

#include <algorithm>

#include "backends/cpu/steps/element.h"

namespace loipe::cpu {

void StridedRead::read(const std::byte* base, std::int64_t start, std::int64_t count, std::byte* to) const {
  visit_element(element_size_, [&]<class Element>(Element) {
    read_elements(reinterpret_cast<const Element*>(base) + offset_, start, count,
                  reinterpret_cast<Element*>(to));
  });
}

namespace {

template <class Element>
void read_run(const Element* from, std::int64_t stride, std::int64_t count, Element* to) {
  if (stride == 1) std::copy_n(from, count, to);
  else if (stride == 0) std::fill_n(to, count, *from);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

}  // namespace

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
  while (count > 0) {
    std::int64_t position = column * stride, rest = row;
    for (std::size_t axis = inner; axis-- > 0; rest /= space_[axis])
      position += rest % space_[axis] * strides_[axis];
    const std::int64_t run = std::min(count, extent - column);
    read_run(from + position, stride, run, to);
    to += run;
    count -= run;
    column = 0;
    ++row;
  }
}

}  // namespace loipe::cpu
