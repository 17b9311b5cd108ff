// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/kernel_compiler.h"

#include <llvm/IR/Module.h>

#include <algorithm>

#include "backends/llvm/kernel_emitter.h"
#include "backends/llvm/op_emitter.h"

namespace loipe::jit {

namespace {

std::string name_of(std::size_t function) { return "loipe_kernel_" + std::to_string(function); }

}  // namespace

KernelCompiler::KernelCompiler(Level level) : level_(level) {}
KernelCompiler::~KernelCompiler() = default;

bool KernelCompiler::supports(const kernel::Kernel& kernel) {
  return std::ranges::all_of(kernel.body, [](const kernel::Node& node) {
    return node.kind != kernel::Kind::scalar || has_vector_function(node.op, node.dtype);
  });
}

const kernel::Function* KernelCompiler::add(const kernel::Kernel& kernel) {
  const auto [place, is_new] = known_.try_emplace(kernel::to_text(kernel), functions_.size());
  if (is_new) {
    functions_.push_back(nullptr);
    pending_.push_back({kernel, place->second});
  }
  return &functions_[place->second];
}

void KernelCompiler::compile() {
  if (pending_.empty()) return;
  if (!session_) session_ = std::make_unique<Session>(level_, Contraction::explicit_only);
  std::string content;
  for (const Pending& pending : pending_)
    content += name_of(pending.function) + ": " + kernel::to_text(pending.kernel);
  const std::string key = session_->key(content);
  if (!session_->load(key)) {
    auto module = session_->new_module(name_of(pending_.front().function));
    for (const Pending& pending : pending_) emit_kernel(*module, pending.kernel, name_of(pending.function));
    session_->add(std::move(module), key);
  }
  for (const Pending& pending : pending_)
    functions_[pending.function] =
        reinterpret_cast<kernel::Function>(session_->address(name_of(pending.function)));
  pending_.clear();
}

}  // namespace loipe::jit
