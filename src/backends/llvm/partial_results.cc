// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/partial_results.h"

#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <limits>

namespace loipe::jit {

PartialResults::PartialResults(llvm::IRBuilder<>& builder, OpEmitter& ops, const kernel::Kernel& kernel)
    : b_(builder), ops_(ops), kernel_(kernel), partials_(kernel.stores.size()) {
  for (std::size_t s = 0; s < kernel.stores.size(); ++s)
    for (int vector = 0; kernel.stores[s].is_reduced && vector < kernel.vectors; ++vector)
      partials_[s].push_back(b_.CreateAlloca(ops_.type(dtype_of(s))));
}

void PartialResults::promote(llvm::Function& function) {
  llvm::SmallVector<llvm::AllocaInst*> variables;
  for (const auto& of_store : partials_)
    for (llvm::Value* partial : of_store) variables.push_back(llvm::cast<llvm::AllocaInst>(partial));
  if (variables.empty()) return;
  llvm::DominatorTree tree(function);
  llvm::PromoteMemToReg(variables, tree);
}

void PartialResults::start() {
  for (std::size_t s = 0; s < kernel_.stores.size(); ++s)
    for (llvm::Value* partial : partials_[s]) b_.CreateStore(start_of(s), partial);
}

DType PartialResults::dtype_of(std::size_t store) const {
  return kernel_.accesses[kernel_.stores[store].access].dtype;
}

llvm::Constant* PartialResults::start_of(std::size_t store) const {
  const double infinity = std::numeric_limits<double>::infinity();
  return ops_.constant(dtype_of(store), kernel_.reduction == kernel::Reduction::sum   ? 0
                                        : kernel_.reduction == kernel::Reduction::max ? -infinity
                                                                                      : infinity);
}

/// Once met, NaN stays.
llvm::Value* PartialResults::combined(llvm::Value* best, llvm::Value* x) {
  if (kernel_.reduction == kernel::Reduction::sum) return b_.CreateFAdd(best, x);
  llvm::Value* is_better =
      kernel_.reduction == kernel::Reduction::max ? b_.CreateFCmpOGT(x, best) : b_.CreateFCmpOLT(x, best);
  return b_.CreateSelect(b_.CreateOr(is_better, b_.CreateFCmpUNO(x, x)), x, best);
}

void PartialResults::add(std::size_t s, int vector, llvm::Value* value) {
  llvm::Value* partial = partials_[s][static_cast<std::size_t>(vector)];
  b_.CreateStore(combined(b_.CreateLoad(value->getType(), partial), value), partial);
}

llvm::Value* PartialResults::of_vector(std::size_t s, int vector) {
  return b_.CreateLoad(ops_.type(dtype_of(s)), partials_[s][static_cast<std::size_t>(vector)]);
}

}  // namespace loipe::jit
