// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace loipe {

/// Asks the operating system for large pages in place of small ones wherever they fit in `memory`, best
/// before it is touched: a walk through large arrays otherwise misses the TLB at every step, and hardware
/// prefetching stops at the end of each page. Where there are none, nothing happens.
void ask_for_large_pages(void* memory, std::size_t bytes);

}  // namespace loipe
