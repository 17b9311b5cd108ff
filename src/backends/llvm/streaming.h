// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace loipe::jit {

/// Results of more bytes than this leave the caches before anybody reads them: they are
/// written past the caches, which saves reading their lines first.
std::size_t streaming_threshold();

/// memcpy that leaves the caches alone; `bytes` are whole elements of 4 or 8 bytes.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);
/// Fills with copies of one element of 4 or 8 bytes.
void stream_fill(std::byte* to, std::size_t bytes, const std::byte* element, std::size_t element_bytes);
/// Before another thread may read what was streamed.
void stream_fence();

}  // namespace loipe::jit
