// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace loipe::search {

/// Threads that 0 stands for.
inline int thread_count(int requested) {
  return requested > 0 ? requested : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// Runs job(0), ..., job(count - 1) on so many threads; the first exception is passed on.
template <typename Job>
void run_parallel(int count, int threads, Job job) {
  std::atomic<int> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (int k = next++; k < count; k = next++) job(k);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < std::min(threads, count); ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace loipe::search
