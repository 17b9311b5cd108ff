// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"
#include "backends/cpu/plan.h"
#include "base/pool.h"

namespace loipe::cpu {

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Program& program, Plan plan, int threads);
  ~CpuExecutable() override;

  std::size_t peak_bytes() const override { return peak_bytes_; }
  /// What peak_bytes() would be.
  static std::size_t peak_bytes_of(const Program& program, const Plan& plan, int threads);

 private:
  class Workspace;
  void run_checked(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const override;

  Plan plan_;
  int threads_;
  std::size_t scratch_stride_ = 0, shared_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  Pool<Workspace> workspaces_;
};

}  // namespace loipe::cpu
