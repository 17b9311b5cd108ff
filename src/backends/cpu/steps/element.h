// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace loipe::cpu {

/// Calls f with an unsigned integer of the element size: moving elements does not
/// depend on what they are.
template <class F>
decltype(auto) visit_element(std::size_t size, F&& f) {
  switch (size) {
    case 1: return f(std::uint8_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: throw InternalError("an element of " + std::to_string(size) + " bytes");
  }
}

}  // namespace loipe::cpu
