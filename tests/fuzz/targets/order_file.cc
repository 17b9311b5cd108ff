// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "fuzz/fuzz_target.h"
#include "ir/parser.h"
#include "orders/order.h"

namespace loipe::testing {

/// Reads an order for a program of six vertices. What is accepted is a permutation.
void fuzz_order_file(std::span<const std::uint8_t> bytes) {
  static const Program program = program_from_text(R"(program chain(%x: f64[]) {
  %1 = sin(%x)
  %2 = mul(%1, %x)
  %3 = exp(%2)
  %4 = mul(%3, %1)
  %5 = add(%4, %2)
  %6 = tanh(%5)
  return %6
})");
  const MemoryFile memory(bytes);
  for (const char* task : {"", "f"})
    is_refused([&] {
      const EliminationOrder order = resolve_order(memory.path(), program, task);
      if (order.has_moves()) return;  // each has found its vertex or edge
      std::vector<int> vertices = order.vertices;
      std::ranges::sort(vertices);
      require(vertices == eliminable_vertices(program), "an order that is no permutation was accepted");
    });
}

}  // namespace loipe::testing
