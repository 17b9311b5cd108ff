// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernel_collector.h"

#ifdef LOIPE_LLVM
#include "backends/llvm/kernel_compiler.h"
#endif

namespace loipe::cpu {

struct KernelCollector::State {
#ifdef LOIPE_LLVM
  jit::KernelCompiler compiler{jit::Level::moderate};
#endif
  int vector_bytes = 0;
};

KernelCollector::KernelCollector(const KernelTable& kernels, [[maybe_unused]] bool compiles, PassLog* log)
    : helpers_{kernels.f32.transpose, kernels.f64.transpose}, log_(log), state_(std::make_unique<State>()) {
#ifdef LOIPE_LLVM
  if (compiles) state_->vector_bytes = jit::vector_bytes();
#endif
}

int KernelCollector::vector_bytes() const { return state_->vector_bytes; }

const kernel::Function* KernelCollector::add([[maybe_unused]] const kernel::Kernel& kernel) {
#ifdef LOIPE_LLVM
  if (vector_bytes() == 0 || !jit::KernelCompiler::supports(kernel)) return nullptr;
  const std::size_t before = state_->compiler.functions();
  const kernel::Function* const function = state_->compiler.add(kernel);
  const bool is_new = state_->compiler.functions() > before;
  if (log_ != nullptr) {
    log_->count(BackendPass::kernels, 1, is_new ? 1 : 0);
    if (is_new) log_->write(BackendPass::kernels, kernel::to_text(kernel));
  }
  return function;
#else
  return nullptr;
#endif
}

void KernelCollector::compile() {
#ifdef LOIPE_LLVM
  const PassLog::Scope scope(log_, BackendPass::kernels);
  state_->compiler.compile();
#endif
}

KernelCollector::~KernelCollector() = default;

}  // namespace loipe::cpu
