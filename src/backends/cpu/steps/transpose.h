// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cpu/kernels/kernel_table.h"

namespace loipe::cpu {

/// Whether there is a kernel for elements of this size.
template <class Element>
inline constexpr bool kHasTranspose = sizeof(Element) == sizeof(float) || sizeof(Element) == sizeof(double);

/// to[row * to_row + column] = from[row + column * stride]. The kernel only moves bits.
template <class Element>
void transpose(const Element* from, std::int64_t stride, Element* to, std::int64_t to_row, std::int64_t rows,
               std::int64_t columns, const KernelTable& kernels) {
  static_assert(kHasTranspose<Element>);
  using Float = std::conditional_t<sizeof(Element) == sizeof(float), float, double>;
  kernels.floats<Float>().transpose_into(reinterpret_cast<const Float*>(from), stride,
                                         reinterpret_cast<Float*>(to), to_row, rows, columns);
}

}  // namespace loipe::cpu
