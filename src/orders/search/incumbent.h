// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace loipe::search {

/// When the best cost fell, and to what; the rank tells who found it.
struct Fall {
  double seconds;
  std::int64_t cost;
  int rank;
};

/// The best sequence of eliminations so far, shared by all threads, and the clock. Of equal
/// costs the lowest rank wins, so that the result does not depend on who came first.
template <typename Step>
class BasicIncumbent {
 public:
  using History = std::vector<Fall>;

  using Progress = std::function<void(double, std::int64_t)>;  ///< seconds, best cost

  explicit BasicIncumbent(double budget_seconds, Progress progress = {})
      : budget_(budget_seconds), progress_(std::move(progress)) {}

  void offer(const std::vector<Step>& order, std::int64_t cost, int rank) {
    const std::lock_guard lock(mutex_);
    if (std::pair(cost, rank) >= std::pair(cost_.load(), rank_)) return;
    if (cost < cost_) history_.push_back({seconds(), cost, rank});
    cost_ = cost;
    rank_ = rank;
    order_ = order;
  }

  std::int64_t cost() const { return cost_; }
  const std::vector<Step>& order() const { return order_; }
  int rank() const { return rank_; }
  const History& history() const { return history_; }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double budget() const { return budget_; }
  bool is_out_of_time() const { return seconds() > budget_; }

  /// Tells how far the search is.
  void report() {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    progress_(std::min(seconds(), budget_), cost_);
  }

 private:
  double budget_;
  Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::atomic<std::int64_t> cost_ = std::numeric_limits<std::int64_t>::max();
  int rank_ = std::numeric_limits<int>::max();
  std::vector<Step> order_;
  History history_;
};

/// Of orders of vertices.
using Incumbent = BasicIncumbent<int>;

}  // namespace loipe::search
