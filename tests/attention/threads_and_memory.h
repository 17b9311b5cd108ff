// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "attention/problem.h"

namespace loipe::attention::testing {

/// A runner on new threads, in an order of tasks of its own.
struct Threads {
  int count;
  Parallel parallel() { return {count, run, this}; }
  static void run(void* self, std::int64_t tasks, void (*body)(void*, std::int64_t, int), void* closure) {
    std::atomic<std::int64_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < static_cast<Threads*>(self)->count; ++t)
      threads.emplace_back([&, t] {
        for (std::int64_t task = next++; task < tasks; task = next++) body(closure, tasks - 1 - task, t);
      });
    for (std::thread& thread : threads) thread.join();
  }
};

/// Memory of the kind that kernels want, full of NaN, with a line behind its end that nobody may write.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : lines_(bytes / sizeof(Line) + 2), bytes_(bytes) {
    for (Line& line : lines_) std::fill(std::begin(line.bytes), std::end(line.bytes), std::byte{0xff});
  }
  std::span<std::byte> bytes() { return {lines_.data()->bytes, bytes_}; }
  /// Nothing behind the end was written.
  bool is_whole() const { return lines_.back().bytes[63] == std::byte{0xff}; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::size_t bytes_;
};

}  // namespace loipe::attention::testing
