// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/pass_log.h"

#include <utility>

namespace loipe::cpu {

PassLog::PassLog() : since_(Clock::now()) {
  for (const BackendPassInfo& pass : all_backend_passes()) entries_.push_back({pass, 0, 0, 0, ""});
}

BackendPass PassLog::switch_to(BackendPass pass) {
  const Clock::time_point now = Clock::now();
  if (running_ != BackendPass::count)
    of(running_).seconds += std::chrono::duration<double>(now - since_).count();
  since_ = now;
  if (pass != BackendPass::count) has_run_.set(static_cast<std::size_t>(pass));
  return std::exchange(running_, pass);
}

PassLog::Scope::Scope(PassLog* log, BackendPass pass) : log_(log) {
  if (log_ != nullptr) outer_ = log_->switch_to(pass);
}

PassLog::Scope::~Scope() {
  if (log_ != nullptr) log_->switch_to(outer_);
}

void PassLog::count(BackendPass pass, std::int64_t before, std::int64_t after) {
  of(pass).before += before;
  of(pass).after += after;
}

void PassLog::write(BackendPass pass, const std::string& text) { of(pass).text += text; }

std::vector<BackendPassReport> PassLog::reports(const DisabledPasses& disabled) const {
  std::vector<BackendPassReport> result;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (has_run_.test(i) && !disabled.contains(static_cast<BackendPass>(i))) result.push_back(entries_[i]);
  return result;
}

}  // namespace loipe::cpu
