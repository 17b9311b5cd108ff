// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "backends/cpu/steps/map_group.h"
#include "backends/kernel/kernel.h"

namespace loipe::cpu {

/// A kernel with the places of its accesses.
struct PlacedKernel {
  struct Place {
    BufferId buffer;
    std::int64_t byte_offset;
  };
  kernel::Kernel kernel;
  std::vector<Place> places;      ///< per access
  std::int64_t element_cost = 1;  ///< of one index, in elementary operations
};

/// The group as a kernel for vectors of that many bytes: its space collapsed, the loop
/// along which stored values are contiguous last, and before it the one along which
/// most of the operands that are not contiguous there are. Nothing for an empty space
/// and for opcodes that kernels lack.
std::optional<PlacedKernel> kernel_of(const MapGroup& group, int vector_bytes);

}  // namespace loipe::cpu
