// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/plan.h"

#include <loipe/tensor.h>

#include <algorithm>

namespace loipe::cpu {

namespace {

std::size_t largest(const Plan& plan, std::size_t (Step::*bytes)() const) {
  std::size_t most = 0;
  for (const auto& step : plan.steps) most = std::max(most, (step.get()->*bytes)());
  return most;
}

}  // namespace

std::size_t Plan::scratch_bytes() const { return whole_lines(largest(*this, &Step::scratch_bytes)); }
std::size_t Plan::shared_bytes() const { return whole_lines(largest(*this, &Step::shared_bytes)); }
std::size_t Plan::heap_bytes() const { return largest(*this, &Step::heap_bytes); }

}  // namespace loipe::cpu
