// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/rng.h"

namespace loipe::testing {

/// The decisions of a generator: drawn from a seed, or read from bytes, so that a
/// fuzzer that mutates the bytes mutates what is generated. After the last byte every
/// choice is the first one.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : rng_(seed) {}
  explicit Choices(std::span<const std::uint8_t> bytes) : rng_(0), reads_bytes_(true), bytes_(bytes) {}

  bool is_exhausted() const { return reads_bytes_ && bytes_.empty(); }

  std::int64_t below(std::int64_t bound) { return reads_bytes_ ? next_byte() % bound : rng_.below(bound); }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) {
    return reads_bytes_ ? static_cast<double>(next_byte()) < 256 * probability : rng_.chance(probability);
  }

 private:
  std::int64_t next_byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  Rng rng_;
  bool reads_bytes_ = false;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace loipe::testing
