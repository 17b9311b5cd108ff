// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/plan.h"

namespace loipe::cpu {

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Program& program, Plan plan, int threads);
  ~CpuExecutable() override;

  std::size_t peak_bytes() const override { return peak_bytes_; }

 private:
  class Workspace;
  void run_checked(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const override;
  std::unique_ptr<Workspace> take_workspace() const;
  void give_back(std::unique_ptr<Workspace> workspace) const;

  Plan plan_;
  int threads_;
  std::size_t scratch_stride_ = 0, shared_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  /// Workspaces of finished runs: as many as ever ran at the same time.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace loipe::cpu
