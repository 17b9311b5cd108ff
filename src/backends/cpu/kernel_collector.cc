// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernel_collector.h"

#include <cstdlib>
#include <string_view>

#ifdef LOIPE_LLVM
#include "backends/llvm/kernel_compiler.h"
#endif

namespace loipe::cpu {

#ifdef LOIPE_LLVM

namespace {

/// LOIPE_KERNELS=off keeps elementwise groups interpreted, for comparisons.
bool is_switched_off() {
  const char* wanted = std::getenv("LOIPE_KERNELS");
  return wanted != nullptr && std::string_view(wanted) == "off";
}

}  // namespace

struct KernelCollector::State {
  jit::KernelCompiler compiler{jit::Level::moderate};
  int vector_bytes = is_switched_off() ? 0 : jit::vector_bytes();
};

KernelCollector::KernelCollector(const KernelTable& kernels)
    : helpers_{kernels.f32.transpose, kernels.f64.transpose}, state_(std::make_unique<State>()) {}

int KernelCollector::vector_bytes() const { return state_->vector_bytes; }

const kernel::Function* KernelCollector::add(const kernel::Kernel& kernel) {
  return jit::KernelCompiler::supports(kernel) ? state_->compiler.add(kernel) : nullptr;
}

void KernelCollector::compile() { state_->compiler.compile(); }

#else

struct KernelCollector::State {};

KernelCollector::KernelCollector(const KernelTable& kernels)
    : helpers_{kernels.f32.transpose, kernels.f64.transpose} {}
int KernelCollector::vector_bytes() const { return 0; }
const kernel::Function* KernelCollector::add(const kernel::Kernel&) { return nullptr; }
void KernelCollector::compile() {}

#endif

KernelCollector::~KernelCollector() = default;

}  // namespace loipe::cpu
