// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "base/floating_mode.h"

namespace loipe::cpu {

int available_threads() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)); }

namespace {

using Body = void (*)(void*, std::int64_t, int);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Helpers spin for some ten microseconds between jobs, the usual gap between the
/// steps of a run, and sleep after that.
constexpr int kSpins = 2000;

/// One job at a time: a counter of tasks to claim. The upper half of `ticket_` is the
/// job's number, the lower half the next task. A claim is a compare-exchange of the
/// whole ticket, so that a helper which is late, with the fields of an old job in
/// hand, cannot claim from a new one.
class Pool {
 public:
  ~Pool() {
    is_stopping_.store(true);
    ticket_.fetch_add(kOneJob);
    ticket_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  /// False when the pool is busy with another caller's job.
  bool run(int threads, std::int64_t tasks, Body body, void* closure) {
    if (is_busy_.exchange(true, std::memory_order_acquire)) return false;
    start_helpers(threads - 1);
    publish(threads, static_cast<std::uint32_t>(tasks), body, closure);
    work(0);
    while (finished_.load(std::memory_order_acquire) != tasks) wait_a_little();
    is_busy_.store(false, std::memory_order_release);
    return true;
  }

 private:
  static constexpr std::uint64_t kOneJob = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kNoTask = ~std::uint32_t{0};
  static constexpr std::uint32_t task_of(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket); }
  static constexpr std::uint64_t job_of(std::uint64_t ticket) { return ticket / kOneJob; }

  void start_helpers(int count) {
    try {
      while (static_cast<int>(helpers_.size()) < count)
        helpers_.emplace_back([this, thread = static_cast<int>(helpers_.size()) + 1] { help(thread); });
    } catch (const std::exception&) {
      // No more threads, or no memory for them: the others do the work.
    }
  }

  /// No task of the job before is running: its caller has waited for all. The fields
  /// change only while the ticket allows no claim, and are released one by one, so
  /// that who sees a new field fails to claim with the ticket of the job before.
  void publish(int threads, std::uint32_t tasks, Body body, void* closure) {
    const std::uint64_t next_job = (job_of(ticket_.load(std::memory_order_relaxed)) + 1) * kOneJob;
    ticket_.store(next_job | kNoTask, std::memory_order_release);
    threads_.store(threads, std::memory_order_release);
    body_.store(body, std::memory_order_release);
    closure_.store(closure, std::memory_order_release);
    mode_.store(FloatingMode::of_this_thread().bits(), std::memory_order_release);
    tasks_.store(tasks, std::memory_order_release);
    finished_.store(0, std::memory_order_relaxed);
    ticket_.store(next_job + kOneJob, std::memory_order_release);
    ticket_.notify_all();
  }

  /// Claims and does tasks until there are none.
  void work(int thread) {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (true) {
      // What is read here is of the ticket's job if the claim succeeds.
      const Body body = body_.load(std::memory_order_acquire);
      void* const closure = closure_.load(std::memory_order_acquire);
      const FloatingMode mode = FloatingMode::from_bits(mode_.load(std::memory_order_acquire));
      const bool is_invited = thread < threads_.load(std::memory_order_acquire);
      if (!is_invited || task_of(ticket) >= tasks_.load(std::memory_order_acquire)) return;
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire))
        continue;
      if (thread > 0) mode.set();
      body(closure, task_of(ticket), thread);
      finished_.fetch_add(1, std::memory_order_release);
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }

  void help(int thread) {
    while (!is_stopping_.load(std::memory_order_acquire)) {
      const std::uint64_t job = job_of(ticket_.load(std::memory_order_acquire));
      work(thread);
      std::uint64_t now = ticket_.load(std::memory_order_acquire);
      for (int i = 0; i < kSpins && job_of(now) == job; ++i) {
        pause();
        now = ticket_.load(std::memory_order_acquire);
      }
      if (job_of(now) == job) ticket_.wait(now);
    }
  }

  void wait_a_little() {
    for (int i = 0; i < 64; ++i) pause();
    if (++waits_ % 64 == 0) std::this_thread::yield();
  }

  std::atomic<bool> is_busy_{false};
  std::vector<std::thread> helpers_;
  std::uint32_t waits_ = 0;
  std::atomic<bool> is_stopping_{false};
  std::atomic<std::uint64_t> ticket_{kNoTask};
  std::atomic<std::uint32_t> tasks_{0};
  std::atomic<int> threads_{0};
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> closure_{nullptr};
  std::atomic<std::uint32_t> mode_{0};  ///< of the caller's floating-point unit
  std::atomic<std::int64_t> finished_{0};
};

/// A body that may throw: the first exception is kept for the caller, and tasks that
/// begin after it do nothing.
struct Guarded {
  Body body;
  void* closure;
  std::atomic<bool> has_failed{false};
  std::exception_ptr error{};

  static void call(void* self, std::int64_t task, int thread) {
    auto& guarded = *static_cast<Guarded*>(self);
    if (guarded.has_failed.load(std::memory_order_relaxed)) return;
    try {
      guarded.body(guarded.closure, task, thread);
    } catch (...) {
      if (!guarded.has_failed.exchange(true)) guarded.error = std::current_exception();
    }
  }
};

}  // namespace

namespace detail {

void parallel_for(int threads, std::int64_t tasks, Body body, void* closure) {
  static Pool pool;
  const bool fits = tasks < ~std::uint32_t{0};
  Guarded guarded{body, closure};
  if (fits && pool.run(threads, tasks, Guarded::call, &guarded)) {
    if (guarded.error) std::rethrow_exception(guarded.error);
    return;
  }
  for (std::int64_t task = 0; task < tasks; ++task) body(closure, task, 0);
}

}  // namespace detail

}  // namespace loipe::cpu
