// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/partial_results.h"

#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <limits>

namespace loipe::jit {

PartialResults::PartialResults(llvm::IRBuilder<>& builder, OpEmitter& ops, const kernel::Kernel& kernel)
    : b_(builder), ops_(ops), kernel_(kernel), lane_count_(kernel.lanes), partials_(kernel.stores.size()) {
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

void PartialResults::add(std::size_t s, int vector, llvm::Value* value, llvm::Value* first) {
  llvm::Value* partial = partials_[s][static_cast<std::size_t>(vector)];
  if (first != nullptr) {
    llvm::SmallVector<llvm::Constant*> lanes;
    for (int lane = 0; lane < lane_count_; ++lane)
      lanes.push_back(b_.getInt32(static_cast<std::uint32_t>(vector * lane_count_ + lane)));
    llvm::Value* limit = b_.CreateTrunc(first, b_.getInt32Ty());
    llvm::Value* is_new =
        lane_count_ == 1 ? b_.CreateICmpUGE(lanes[0], limit)
                         : b_.CreateICmpUGE(llvm::ConstantVector::get(lanes),
                                            b_.CreateVectorSplat(static_cast<unsigned>(lane_count_), limit));
    value = b_.CreateSelect(is_new, value, start_of(s));
  }
  b_.CreateStore(combined(b_.CreateLoad(value->getType(), partial), value), partial);
}

llvm::Value* PartialResults::of_vector(std::size_t s, int vector) {
  return b_.CreateLoad(ops_.type(dtype_of(s)), partials_[s][static_cast<std::size_t>(vector)]);
}

llvm::Value* PartialResults::of_all(std::size_t s) { return across_lanes(across_vectors(s)); }

llvm::Value* PartialResults::across_vectors(std::size_t s) {
  std::vector<llvm::Value*> parts;
  for (llvm::Value* partial : partials_[s]) parts.push_back(b_.CreateLoad(ops_.type(dtype_of(s)), partial));
  while (parts.size() > 1) {
    std::vector<llvm::Value*> pairs;
    for (std::size_t k = 0; k < parts.size(); k += 2)
      pairs.push_back(k + 1 < parts.size() ? combined(parts[k], parts[k + 1]) : parts[k]);
    parts = std::move(pairs);
  }
  return parts[0];
}

llvm::Value* PartialResults::across_lanes(llvm::Value* vector) {
  for (int width = lane_count_ / 2; width > 0; width /= 2) {
    llvm::SmallVector<int> low, high;
    for (int lane = 0; lane < width; ++lane) low.push_back(lane), high.push_back(width + lane);
    vector = combined(b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }
  return lane_count_ == 1 ? vector : b_.CreateExtractElement(vector, std::uint64_t{0});
}

}  // namespace loipe::jit
