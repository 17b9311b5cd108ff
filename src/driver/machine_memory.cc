// SPDX-License-Identifier: Apache-2.0
#include "driver/machine_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <memory>
#include <new>
#include <span>
#include <thread>

#include "driver/machine_memory_loops.h"

namespace loipe {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kKilobyte = 1024, kMegabyte = 1024 * kKilobyte;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The size of a data cache of the first core; `otherwise` where the system does not say.
std::size_t cache_bytes(const std::string& level, std::size_t otherwise) {
  for (int index = 0;; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::string its_level, type;
    if (!(std::ifstream(folder + "level") >> its_level)) return otherwise;
    std::ifstream(folder + "type") >> type;
    std::size_t kilobytes = 0;  // the file says "48K"
    std::ifstream(folder + "size") >> kilobytes;
    if (its_level == level && type != "Instruction" && kilobytes > 0) return kilobytes * kKilobyte;
  }
}

std::size_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : 0;
}

/// Three arrays' worth of memory. They begin at different places within a page, since
/// a load waits for a store before it that ends in the same twelve bits.
class WorkingSet {
 public:
  explicit WorkingSet(std::size_t bytes) : bytes_(bytes) {
    const std::size_t size = (bytes + 3 * kStagger + kPage - 1) / kPage * kPage;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, size)));
    if (!memory_) throw std::bad_alloc();
    madvise(memory_.get(), size, MADV_HUGEPAGE);
    double* numbers = reinterpret_cast<double*>(memory_.get());
    std::fill(numbers, numbers + size / sizeof(double), 1.0);
  }

  /// The arrays that a loop with this many of them works on.
  MemoryArrays split(std::size_t parts) const {
    const std::size_t part = bytes_ / parts / kMemoryLoopStep * kMemoryLoopStep;
    std::byte* first = memory_.get();
    return {first, first + (parts > 1 ? part + kStagger : 0), first + (parts > 2 ? 2 * (part + kStagger) : 0),
            part};
  }

 private:
  static constexpr std::size_t kPage = 2 * kMegabyte;
  static constexpr std::size_t kStagger = 21 * 64;  // a third of 4 kB in whole cache lines

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// Bytes per second of one thread: the median of many trials, since a lucky one may
/// have had the memory for itself.
double loop_rate(MemoryLoop loop, const MemoryArrays& arrays, std::size_t parts, double seconds) {
  const std::size_t bytes = arrays.bytes * parts;
  const std::size_t repetitions = std::max<std::size_t>(4 * kMegabyte / std::max<std::size_t>(bytes, 1), 1);
  std::vector<double> trials;
  loop(arrays);
  const Clock::time_point begin = Clock::now();
  while (trials.size() < 3 || seconds_since(begin) < seconds) {
    const Clock::time_point start = Clock::now();
    for (std::size_t i = 0; i < repetitions; ++i) loop(arrays);
    trials.push_back(seconds_since(start));
  }
  const auto middle = trials.begin() + std::ssize(trials) / 2;
  std::nth_element(trials.begin(), middle, trials.end());
  return static_cast<double>(bytes * repetitions) / *middle;
}

/// All threads start each loop together.
void run_thread(const MemoryLevel& level, double seconds, std::span<std::latch* const> starts,
                MemorySpeed& speed) {
  const MemoryLoops loops = memory_loops();
  const WorkingSet set(level.bytes);
  const auto measure = [&](std::size_t which, MemoryLoop loop, std::size_t parts) {
    starts[which]->arrive_and_wait();
    return loop_rate(loop, set.split(parts), parts, seconds) * 1e-9;
  };
  speed = {measure(0, loops.read, 1), measure(1, loops.copy, 2), measure(2, loops.triad, 3)};
}

}  // namespace

std::vector<MemoryLevel> memory_levels(int threads) {
  const std::size_t l1 = cache_bytes("1", 32 * kKilobyte), l2 = cache_bytes("2", 512 * kKilobyte);
  const std::size_t l3 = cache_bytes("3", 0), count = static_cast<std::size_t>(std::max(threads, 1));
  std::vector<MemoryLevel> levels{{"L1", l1 / 2}, {"L2", l2 / 2}};
  if (const std::size_t bytes = std::min(l3 / 2 / count, 8 * l2); bytes >= 2 * l2)
    levels.push_back({"L3", bytes});
  const std::size_t beyond = std::max(256 * kMegabyte, 2 * l3);
  levels.push_back({"DRAM", std::min(beyond, std::max(physical_bytes() / 8, 64 * kMegabyte)) / count});
  return levels;
}

MemorySpeed measure_memory(const MemoryLevel& level, int threads, double seconds) {
  std::latch read(threads), copy(threads), triad(threads);
  std::latch* const starts[] = {&read, &copy, &triad};
  std::vector<MemorySpeed> speeds(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < speeds.size(); ++i)
      others.emplace_back([&, i] { run_thread(level, seconds, starts, speeds[i]); });
    run_thread(level, seconds, starts, speeds[0]);
  }
  MemorySpeed all;
  for (const MemorySpeed& speed : speeds) {
    all.read += speed.read;
    all.copy += speed.copy;
    all.triad += speed.triad;
  }
  return all;
}

}  // namespace loipe
