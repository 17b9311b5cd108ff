// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/product_epilogue.h"

namespace loipe::cpu {

void ProductEpilogue::run(const RunContext& around, std::int64_t block, std::byte* block_results,
                          std::byte* scratch) const {
  auto** const bases = reinterpret_cast<std::byte**>(scratch);
  for (std::size_t k = 0; k < views.size(); ++k)
    bases[k] = k == results ? block_results : around.bases[views[k].buffer] + views[k].offset;
  for (std::size_t axis = blocks.size(); axis-- > 0; block /= blocks[axis]) {
    const std::int64_t index = block % blocks[axis];
    for (std::size_t k = 0; index > 0 && k < views.size(); ++k)
      if (k != results) bases[k] += index * views[k].block_strides[axis];
  }
  step->run({bases, scratch + bases_bytes(), 0, nullptr, 1});
}

}  // namespace loipe::cpu
