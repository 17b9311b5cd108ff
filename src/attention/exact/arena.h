// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"

namespace loipe::attention {

/// Cuts arrays out of a given memory, each aligned to 64 bytes. Without a memory it only
/// counts, so that one piece of code says how much is needed and where everything lies.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::span<std::byte> memory) : memory_(memory), counts_only_(false) {}

  template <class T>
  T* take(std::int64_t count) {
    const std::size_t begin = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    if (counts_only_) return nullptr;
    require(used_ <= memory_.size(), "the workspace of attention is too small");
    return reinterpret_cast<T*>(memory_.data() + begin);
  }
  std::size_t used() const { return used_; }

 private:
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
  bool counts_only_ = true;
};

/// A piece of equal size for each thread.
class ThreadMemory {
 public:
  ThreadMemory() = default;
  ThreadMemory(Arena& arena, std::size_t bytes, int threads)
      : bytes_(bytes), memory_(arena.take<std::byte>(static_cast<std::int64_t>(bytes) * threads)) {}
  Arena of(int thread) const { return Arena({memory_ + bytes_ * static_cast<std::size_t>(thread), bytes_}); }

 private:
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace loipe::attention
