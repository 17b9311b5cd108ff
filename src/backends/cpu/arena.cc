// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/arena.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <queue>
#include <set>

namespace loipe::cpu {

namespace {

constexpr std::size_t kAlignment = 64;

/// The gaps between the buffers in use. The arena grows at its end when none fits.
class Gaps {
 public:
  std::size_t take(std::size_t bytes) {
    auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) return grow(bytes);
    const auto [size, place] = *best;
    erase(place, size);
    if (size > bytes) insert(place + bytes, size - bytes);
    return place;
  }

  void give_back(std::size_t place, std::size_t bytes) {
    auto next = by_place_.lower_bound(place);
    if (next != by_place_.end() && next->first == place + bytes) {
      const auto [next_place, next_size] = *next;
      erase(next_place, next_size);
      bytes += next_size;
    }
    auto after = by_place_.lower_bound(place);
    if (after != by_place_.begin()) {
      const auto [before_place, before_size] = *std::prev(after);
      if (before_place + before_size == place) {
        erase(before_place, before_size);
        place = before_place;
        bytes += before_size;
      }
    }
    insert(place, bytes);
  }

  std::size_t size() const { return size_; }

 private:
  /// A gap at the end is extended.
  std::size_t grow(std::size_t bytes) {
    std::size_t place = size_;
    if (!by_place_.empty()) {
      const auto [last_place, last_size] = *by_place_.rbegin();
      if (last_place + last_size == size_) {
        erase(last_place, last_size);
        place = last_place;
      }
    }
    size_ = place + bytes;
    return place;
  }
  void insert(std::size_t place, std::size_t bytes) {
    by_place_.emplace(place, bytes);
    by_size_.emplace(bytes, place);
  }
  void erase(std::size_t place, std::size_t bytes) {
    by_place_.erase(place);
    by_size_.erase({bytes, place});
  }

  std::map<std::size_t, std::size_t> by_place_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::size_t size_ = 0;
};

std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::string to_text(const Buffer& buffer) {
  return std::to_string(buffer.bytes) + " bytes at " + std::to_string(buffer.position) + ", steps " +
         std::to_string(buffer.first_step) + " to " + std::to_string(buffer.last_step) + "\n";
}

std::size_t plan_arena(std::vector<Buffer>& buffers, bool reuses) {
  std::vector<Buffer*> in_order;
  for (Buffer& buffer : buffers)
    if (buffer.kind == BufferKind::arena && buffer.first_step >= 0 && buffer.bytes > 0)
      in_order.push_back(&buffer);
  std::ranges::sort(in_order, {}, [](const Buffer* b) { return std::pair(b->first_step, b); });

  const auto ends_later = [](const Buffer* a, const Buffer* b) { return a->last_step > b->last_step; };
  std::priority_queue<Buffer*, std::vector<Buffer*>, decltype(ends_later)> in_use(ends_later);
  Gaps gaps;
  for (Buffer* buffer : in_order) {
    while (reuses && !in_use.empty() && in_use.top()->last_step < buffer->first_step) {
      gaps.give_back(in_use.top()->position, rounded(in_use.top()->bytes));
      in_use.pop();
    }
    buffer->position = gaps.take(rounded(buffer->bytes));
    in_use.push(buffer);
  }
  return gaps.size();
}

}  // namespace loipe::cpu
