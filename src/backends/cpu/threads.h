// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace loipe::cpu {

/// The number of threads that 0 stands for.
int available_threads();

namespace detail {
void parallel_for(int threads, std::int64_t tasks, void (*body)(void*, std::int64_t, int), void* closure);
}

/// Calls body(task, thread) once for every task in 0..tasks-1, on up to `threads`
/// threads; thread is in 0..threads-1. Which thread does which task is open, so a
/// task's result must not depend on it. All compute in the caller's floating-point mode.
/// When a body throws, tasks that have not begun are left out, and the call throws the
/// first exception once no task runs any more.
///
/// The calling thread takes tasks like all others and waits only for tasks that
/// another thread has begun. So nothing stalls when the helpers do not get a core,
/// or serve another caller: then the caller does everything itself.
template <class Body>
void parallel_for(int threads, std::int64_t tasks, Body&& body) {
  using Closure = std::remove_reference_t<Body>;
  if (threads <= 1 || tasks <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  const auto call = [](void* closure, std::int64_t task, int thread) {
    (*static_cast<Closure*>(closure))(task, thread);
  };
  detail::parallel_for(threads, tasks, call, const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace loipe::cpu
