// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/kernel_body.h"

#include <algorithm>
#include <limits>

namespace loipe::jit {

using kernel::Access;
using kernel::Id;
using kernel::Kernel;
using kernel::Kind;
using kernel::Node;

KernelBody::KernelBody(llvm::Module& module, llvm::IRBuilder<>& builder, const Kernel& kernel)
    : b_(builder),
      kernel_(kernel),
      ops_(module, builder, kernel.lanes),
      lane_count_(kernel.lanes),
      last_(kernel.rank() - 1),
      values_(kernel.body.size()) {
  for (const Node& node : kernel.body) depths_.push_back(depth_of(node));
}

Depth KernelBody::depth_of(const Node& node) const {
  if (node.kind == Kind::constant) return Depth::everywhere;
  if (node.kind == Kind::load) {
    const Access& access = kernel_.accesses[node.operands[0]];
    if (std::ranges::all_of(access.strides, [](std::int64_t s) { return s == 0; })) return Depth::everywhere;
    return access.strides[last_] == 0 ? Depth::row : Depth::element;
  }
  Depth depth = Depth::everywhere;
  const int arity = node.kind == Kind::convert ? 1 : scalar::arity(node.op);
  for (int k = 0; k < arity; ++k)
    depth = std::max(depth, depths_[node.operands[static_cast<std::size_t>(k)]]);
  return depth;
}

llvm::Type* KernelBody::memory_type(DType dtype) const {
  return dtype == DType::boolean ? b_.getInt8Ty() : ops_.type(dtype)->getScalarType();
}

void KernelBody::compute(Depth depth, const Addresses& at, llvm::Value* i) {
  for (std::size_t k = 0; k < kernel_.body.size(); ++k)
    if (depths_[k] == depth) values_[k] = value_of(kernel_.body[k], at, i);
}

llvm::Value* KernelBody::value_of(const Node& node, const Addresses& at, llvm::Value* i) {
  switch (node.kind) {
    case Kind::constant: return ops_.constant(node.dtype, node.value);
    case Kind::load: return load(node.operands[0], at, i);
    case Kind::convert:
      return converted(values_[node.operands[0]], kernel_.body[node.operands[0]].dtype, node.dtype);
    case Kind::scalar: break;
  }
  std::vector<llvm::Value*> operands;
  for (int k = 0; k < scalar::arity(node.op); ++k)
    operands.push_back(values_[node.operands[static_cast<std::size_t>(k)]]);
  const bool is_comparison = scalar::is_logical(node.op) && node.op < scalar::Op::logical_and;
  const DType dtype = is_comparison ? kernel_.body[node.operands[0]].dtype : node.dtype;
  return ops_.emit(node.op, dtype, operands);
}

llvm::Value* KernelBody::converted(llvm::Value* value, DType from, DType to) {
  if (from == to) return value;
  if (to == DType::boolean) return ops_.truth(value);
  if (from == DType::boolean) return ops_.number(value, to);
  return is_integer(from) ? b_.CreateSIToFP(value, ops_.type(to)) : b_.CreateFPCast(value, ops_.type(to));
}

llvm::Value* KernelBody::from_memory(llvm::Value* value, DType dtype) {
  if (dtype != DType::boolean) return value;
  return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

llvm::Value* KernelBody::load(Id k, const Addresses& at, llvm::Value* i) {
  const Access& access = kernel_.accesses[k];
  llvm::Type* element = memory_type(access.dtype);
  const llvm::Align alignment(size_of(access.dtype));
  const std::int64_t stride = access.is_transposed ? 1 : access.strides[last_];
  if (stride == 0) {
    llvm::Value* one = from_memory(b_.CreateAlignedLoad(element, at[k], alignment), access.dtype);
    return lane_count_ == 1 ? one : b_.CreateVectorSplat(static_cast<unsigned>(lane_count_), one);
  }
  llvm::Value* position = stride == 1 ? i : b_.CreateMul(i, index(stride));
  llvm::Value* first = b_.CreateGEP(element, at[k], position);
  llvm::Type* vector = ops_.vector_of(element);
  if (stride == 1 || lane_count_ == 1)
    return from_memory(b_.CreateAlignedLoad(vector, first, alignment), access.dtype);
  return from_memory(
      b_.CreateMaskedGather(vector, b_.CreateGEP(element, first, lane_positions(stride)), alignment),
      access.dtype);
}

/// 32 bits where they do, which is what gathers take.
llvm::Value* KernelBody::lane_positions(std::int64_t stride) {
  const bool is_short = stride * lane_count_ <= std::numeric_limits<std::int32_t>::max();
  std::vector<llvm::Constant*> positions;
  for (std::int64_t lane = 0; lane < lane_count_; ++lane)
    positions.push_back(is_short ? b_.getInt32(static_cast<std::uint32_t>(lane * stride))
                                 : b_.getInt64(static_cast<std::uint64_t>(lane * stride)));
  return llvm::ConstantVector::get(positions);
}

void KernelBody::store(Id k, llvm::Value* value, const Addresses& at, llvm::Value* i) {
  const Access& access = kernel_.accesses[k];
  llvm::Type* element = memory_type(access.dtype);
  if (access.dtype == DType::boolean) value = b_.CreateZExt(value, ops_.vector_of(element));
  const auto lanes = static_cast<std::size_t>(access.is_streamed ? lane_count_ : 1);
  llvm::StoreInst* instruction = b_.CreateAlignedStore(value, b_.CreateGEP(element, at[k], i),
                                                       llvm::Align(size_of(access.dtype) * lanes));
  if (!access.is_streamed) return;
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  instruction->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b_.getContext(), one));
}

}  // namespace loipe::jit
