// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace loipe::cpu {
namespace {

/// True if every task is done exactly once, by threads below the limit.
bool runs_each_task_once(int threads, std::int64_t tasks) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(tasks));
  std::atomic<bool> is_thread_valid = true;
  parallel_for(threads, tasks, [&](std::int64_t task, int thread) {
    ++done[static_cast<std::size_t>(task)];
    if (thread < 0 || thread >= threads) is_thread_valid = false;
  });
  for (const std::atomic<int>& count : done)
    if (count != 1) return false;
  return is_thread_valid;
}

TEST(ThreadsTest, EveryTaskRunsOnce) {
  for (int repetition = 0; repetition < 200; ++repetition)
    for (int threads : {1, 2, 3, 5})
      for (std::int64_t tasks : {0, 1, 2, 3, 7, 64})
        EXPECT_TRUE(runs_each_task_once(threads, tasks)) << threads << " " << tasks;
}

TEST(ThreadsTest, SeveralCallersAtOnce) {
  std::atomic<int> failures = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int repetition = 0; repetition < 500; ++repetition)
        if (!runs_each_task_once(3, 17)) ++failures;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failures, 0);
}

/// A task may itself call: the pool is busy, so the inner tasks run on its thread.
TEST(ThreadsTest, NestedCallsFinish) {
  std::atomic<int> inner = 0;
  parallel_for(2, 8, [&](std::int64_t, int) { parallel_for(2, 8, [&](std::int64_t, int) { ++inner; }); });
  EXPECT_EQ(inner, 64);
}

/// The caller gets an exception when no task runs any more, and the pool goes on.
TEST(ThreadsTest, ExceptionsReachTheCaller) {
  for (int repetition = 0; repetition < 100; ++repetition)
    for (int threads : {1, 2, 3}) {
      std::atomic<int> running = 0;
      const auto body = [&](std::int64_t task, int) {
        ++running;
        const bool fails = task % 7 == 3;
        --running;
        if (fails) throw std::runtime_error("a task failed");
      };
      EXPECT_THROW(parallel_for(threads, 64, body), std::runtime_error);
      EXPECT_EQ(running, 0);
      EXPECT_TRUE(runs_each_task_once(threads, 17));
    }
}

/// Threads see what the caller wrote before, and the caller what they wrote.
TEST(ThreadsTest, WritesAreVisible) {
  std::vector<int> from(1000), to(1000);
  for (int repetition = 0; repetition < 300; ++repetition) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = repetition + static_cast<int>(i);
    parallel_for(3, 20, [&](std::int64_t task, int) {
      for (std::size_t i = static_cast<std::size_t>(task) * 50; i < (static_cast<std::size_t>(task) + 1) * 50;
           ++i)
        to[i] = from[i] + 1;
    });
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], repetition + static_cast<int>(i) + 1);
  }
}

}  // namespace
}  // namespace loipe::cpu
