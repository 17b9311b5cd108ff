// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace loipe {

/// Objects that are made once and used again: as many as were ever in use at the same
/// time. Taking one that lies idle allocates nothing; any thread may take one.
template <class T>
class Pool {
 public:
  /// Gives the object back at the end of its life.
  class Lease {
   public:
    Lease(const Pool& pool, std::unique_ptr<T> object) : pool_(&pool), object_(std::move(object)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (object_) pool_->give_back(std::move(object_));
    }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

   private:
    const Pool* pool_;
    std::unique_ptr<T> object_;
  };

  /// `make` returns a std::unique_ptr<T>.
  template <class Make>
  Lease take(Make make) const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<T> object = std::move(idle_.back());
        idle_.pop_back();
        return Lease(*this, std::move(object));
      }
    }
    return Lease(*this, make());
  }
  Lease take() const {
    return take([] { return std::make_unique<T>(); });
  }

 private:
  /// Losing an object for want of memory is no error: the next run makes another.
  void give_back(std::unique_ptr<T> object) const noexcept {
    const std::lock_guard lock(mutex_);
    try {
      idle_.push_back(std::move(object));
    } catch (const std::bad_alloc&) {
    }
  }

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace loipe
