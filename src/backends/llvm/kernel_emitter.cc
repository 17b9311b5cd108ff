// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/kernel_emitter.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <limits>

#include "backends/llvm/op_emitter.h"
#include "base/check.h"

namespace loipe::jit {

namespace {

using kernel::Access;
using kernel::Id;
using kernel::Kernel;
using kernel::Kind;
using kernel::Node;

/// Indices of the last loop that a block of transposed rows has at most.
constexpr std::int64_t kBlockWidth = 128;

/// Where a value is computed.
enum class Depth { everywhere, row, element };

class Emitter {
 public:
  Emitter(llvm::Module& module, const Kernel& kernel, const std::string& name)
      : kernel_(kernel),
        module_(module),
        b_(module.getContext()),
        ops_(module, b_, kernel.lanes),
        lane_count_(kernel.lanes),
        last_(kernel.rank() - 1),
        values_(kernel.body.size()) {
    llvm::Type *pointer = b_.getPtrTy(), *index = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, index, index}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    function_->addParamAttr(0, llvm::Attribute::NoAlias);
  }

  void run() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
    for (const Node& node : kernel_.body) depths_.push_back(depth_of(node));
    for (std::size_t k = 0; k < kernel_.accesses.size(); ++k) {
      llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(0), k);
      at_.push_back(b_.CreateLoad(b_.getPtrTy(), slot));
      blocks_.push_back(kernel_.accesses[k].is_transposed ? new_block(kernel_.accesses[k]) : nullptr);
    }
    for (std::size_t s = 0; s < kernel_.stores.size(); ++s) {
      partials_.emplace_back();
      for (int vector = 0; kernel_.stores[s].is_reduced && vector < kernel_.vectors; ++vector)
        partials_[s].push_back(b_.CreateAlloca(ops_.type(dtype_of(s))));
    }
    compute(Depth::everywhere, nullptr);
    loop(function_->getArg(1), function_->getArg(2), 1, [&](llvm::Value* tile) { emit_tile(tile); });
    emit_fence();
    b_.CreateRetVoid();
    promote_partials();
  }

 private:
  llvm::Value* index(std::int64_t value) { return b_.getInt64(static_cast<std::uint64_t>(value)); }
  std::int64_t extent(std::size_t loop) const { return kernel_.extents[loop]; }

  Depth depth_of(const Node& node) const {
    if (node.kind == Kind::constant) return Depth::everywhere;
    if (node.kind == Kind::load) {
      const Access& access = kernel_.accesses[node.operands[0]];
      if (std::ranges::all_of(access.strides, [](std::int64_t s) { return s == 0; }))
        return Depth::everywhere;
      return access.strides[last_] == 0 ? Depth::row : Depth::element;
    }
    Depth depth = Depth::everywhere;
    const int arity = node.kind == Kind::convert ? 1 : scalar::arity(node.op);
    for (int k = 0; k < arity; ++k)
      depth = std::max(depth, depths_[node.operands[static_cast<std::size_t>(k)]]);
    return depth;
  }

  /// Runs the body for from, from+step, ... < to; from < to.
  template <class Body>
  void loop(llvm::Value* from, llvm::Value* to, std::int64_t step, Body body) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* head = llvm::BasicBlock::Create(module_.getContext(), "loop", function_);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(from, before);
    body(i);
    llvm::Value* next = b_.CreateAdd(i, index(step), "", true, true);
    i->addIncoming(next, b_.GetInsertBlock());
    llvm::BasicBlock* after = llvm::BasicBlock::Create(module_.getContext(), "after", function_);
    b_.CreateCondBr(b_.CreateICmpULT(next, to), head, after);
    b_.SetInsertPoint(after);
  }

  /// Whether steps of this size meet the end of every range of the loop.
  bool divides(std::int64_t step, std::size_t loop) const {
    if (extent(loop) % step != 0) return false;
    return loop != kernel_.chunked || kernel_.chunk % step == 0;
  }

  /// Runs the body for ranges of `step` indices, the last of which overlaps the one before.
  template <class Body>
  void overlapping_loop(llvm::Value* from, llvm::Value* to, std::int64_t step, bool divides, Body body) {
    const auto *first = llvm::dyn_cast<llvm::ConstantInt>(from),
               *last = llvm::dyn_cast<llvm::ConstantInt>(to);
    if (first && last && last->getSExtValue() - first->getSExtValue() == step) return body(from);
    llvm::Value* most = divides ? nullptr : b_.CreateSub(to, index(step));
    loop(from, to, step,
         [&](llvm::Value* i) { body(divides ? i : b_.CreateSelect(b_.CreateICmpULT(i, most), i, most)); });
  }

  // Addresses --------------------------------------------------------------------

  llvm::Type* memory_type(DType dtype) {
    return dtype == DType::boolean ? b_.getInt8Ty() : ops_.type(dtype)->getScalarType();
  }

  llvm::Value* moved(std::size_t access, llvm::Value* from, llvm::Value* i, std::size_t loop) {
    const Access& a = kernel_.accesses[access];
    if (a.strides[loop] == 0) return from;
    return b_.CreateGEP(memory_type(a.dtype), from, b_.CreateMul(i, index(a.strides[loop])));
  }

  /// Sets every access to index i of the loop for the time of the body.
  template <class Body>
  void at_index(llvm::Value* i, std::size_t loop, Body body) {
    const std::vector<llvm::Value*> before = at_;
    for (std::size_t k = 0; k < at_.size(); ++k) at_[k] = moved(k, at_[k], i, loop);
    body();
    at_ = before;
  }

  // Loops ------------------------------------------------------------------------

  void emit_tile(llvm::Value* tile) {
    const std::size_t chunked = kernel_.chunked;
    const std::int64_t chunks = kernel_.chunks();
    llvm::Value *rest = tile, *from = index(0), *to = index(extent(chunked));
    if (chunks > 1) {
      rest = b_.CreateUDiv(tile, index(chunks));
      llvm::Value* chunk = b_.CreateSub(tile, b_.CreateMul(rest, index(chunks)));
      from = b_.CreateMul(chunk, index(kernel_.chunk));
      to = b_.CreateSelect(b_.CreateICmpEQ(chunk, index(chunks - 1)), to,
                           b_.CreateAdd(from, index(kernel_.chunk)));
    }
    emit_outer(chunked, rest, from, to);
  }

  /// Takes the index of each loop before `outer` from `rest`, innermost first.
  void emit_outer(std::size_t outer, llvm::Value* rest, llvm::Value* from, llvm::Value* to) {
    if (outer == 0) return emit_loops(kernel_.chunked, from, to);
    const std::int64_t size = extent(outer - 1);
    llvm::Value* quotient = outer == 1 ? index(0) : b_.CreateUDiv(rest, index(size));
    llvm::Value* i = outer == 1 ? rest : b_.CreateSub(rest, b_.CreateMul(quotient, index(size)));
    at_index(i, outer - 1, [&] { emit_outer(outer - 1, quotient, from, to); });
  }

  void emit_loops(std::size_t l, llvm::Value* from, llvm::Value* to) {
    if (l == kernel_.first_reduced()) return kernel_.reduces_last ? emit_sums() : emit_lane_sums();
    if (kernel_.block_rows > 0 && l + 1 == last_) return emit_blocks(from, to);
    if (l == last_) return emit_row(from, to, divides(kernel_.step(), l));
    loop(from, to, 1,
         [&](llvm::Value* i) { at_index(i, l, [&] { emit_loops(l + 1, index(0), index(extent(l + 1))); }); });
  }

  // Blocks of transposed rows ----------------------------------------------------

  /// About kBlockWidth indices of the last loop, so that they overlap little.
  std::int64_t block_width() const {
    const std::int64_t size = extent(last_), blocks = (size + kBlockWidth - 1) / kBlockWidth;
    const std::int64_t width = (size + blocks - 1) / blocks;
    return std::min(size, (width + kernel_.step() - 1) / kernel_.step() * kernel_.step());
  }

  llvm::Value* new_block(const Access& access) {
    auto* type = llvm::ArrayType::get(memory_type(access.dtype),
                                      static_cast<std::uint64_t>(kernel_.block_rows * block_width()));
    llvm::AllocaInst* block = b_.CreateAlloca(type);
    block->setAlignment(llvm::Align(64));
    return block;
  }

  void emit_blocks(llvm::Value* from, llvm::Value* to) {
    const std::int64_t width = block_width();
    overlapping_loop(
        from, to, kernel_.block_rows, divides(kernel_.block_rows, last_ - 1), [&](llvm::Value* row) {
          at_index(row, last_ - 1, [&] {
            overlapping_loop(
                index(0), index(extent(last_)), width, extent(last_) % width == 0,
                [&](llvm::Value* column) { at_index(column, last_, [&] { emit_block(width); }); });
          });
        });
  }

  void emit_block(std::int64_t width) {
    for (std::size_t k = 0; k < at_.size(); ++k)
      if (blocks_[k]) fill_block(k, width);
    loop(index(0), index(kernel_.block_rows), 1, [&](llvm::Value* row) {
      at_index(row, last_ - 1, [&] {
        for (std::size_t k = 0; k < at_.size(); ++k)
          if (blocks_[k])
            at_[k] = b_.CreateGEP(memory_type(kernel_.accesses[k].dtype), blocks_[k],
                                  b_.CreateMul(row, index(width)));
        emit_row(index(0), index(width), width % kernel_.step() == 0);
      });
    });
  }

  void fill_block(std::size_t k, std::int64_t width) {
    const Access& access = kernel_.accesses[k];
    llvm::Type *pointer = b_.getPtrTy(), *number = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, number, pointer, number, number}, false);
    const std::size_t place = kernel_.accesses.size() + (size_of(access.dtype) == sizeof(float) ? 0 : 1);
    llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(pointer, function_->getArg(0), place);
    b_.CreateCall(
        type, b_.CreateLoad(pointer, slot),
        {at_[k], index(access.strides[last_]), blocks_[k], index(kernel_.block_rows), index(width)});
  }

  // The body ---------------------------------------------------------------------

  void emit_row(llvm::Value* from, llvm::Value* to, bool divides) {
    compute(Depth::row, nullptr);
    overlapping_loop(from, to, kernel_.step(), divides, [&](llvm::Value* i) { emit_vectors(i, nullptr); });
  }

  /// One step of the last loop. `first` is the first lane that is not computed twice,
  /// null if all are new.
  void emit_vectors(llvm::Value* i, llvm::Value* first) {
    for (int vector = 0; vector < kernel_.vectors; ++vector) {
      const std::int64_t lane = std::int64_t{vector} * lane_count_;
      llvm::Value* at = b_.CreateAdd(i, index(lane));
      compute(Depth::element, at);
      for (std::size_t s = 0; s < kernel_.stores.size(); ++s) {
        if (kernel_.stores[s].is_reduced) emit_partial(s, vector, first);
        else emit_store(kernel_.stores[s], values_[kernel_.stores[s].value], at);
      }
    }
  }

  // Reductions -------------------------------------------------------------------

  /// Partial results are emitted as variables; here they become values.
  void promote_partials() {
    llvm::SmallVector<llvm::AllocaInst*> variables;
    for (const auto& of_store : partials_)
      for (llvm::Value* partial : of_store) variables.push_back(llvm::cast<llvm::AllocaInst>(partial));
    if (variables.empty()) return;
    llvm::DominatorTree tree(*function_);
    llvm::PromoteMemToReg(variables, tree);
  }

  /// Every lane of every vector of a step reduces for itself.
  void start_partials() {
    for (std::size_t s = 0; s < kernel_.stores.size(); ++s)
      for (llvm::Value* partial : partials_[s]) b_.CreateStore(start_of(s), partial);
  }

  DType dtype_of(std::size_t store) const { return kernel_.accesses[kernel_.stores[store].access].dtype; }

  llvm::Constant* start_of(std::size_t store) const {
    const double infinity = std::numeric_limits<double>::infinity();
    return ops_.constant(dtype_of(store), kernel_.reduction == kernel::Reduction::sum   ? 0
                                          : kernel_.reduction == kernel::Reduction::max ? -infinity
                                                                                        : infinity);
  }

  /// Once met, NaN stays.
  llvm::Value* combined(llvm::Value* best, llvm::Value* x) {
    if (kernel_.reduction == kernel::Reduction::sum) return b_.CreateFAdd(best, x);
    llvm::Value* is_better =
        kernel_.reduction == kernel::Reduction::max ? b_.CreateFCmpOGT(x, best) : b_.CreateFCmpOLT(x, best);
    return b_.CreateSelect(b_.CreateOr(is_better, b_.CreateFCmpUNO(x, x)), x, best);
  }

  void emit_partial(std::size_t s, int vector, llvm::Value* first) {
    llvm::Value* partial = partials_[s][static_cast<std::size_t>(vector)];
    llvm::Value* value = values_[kernel_.stores[s].value];
    if (first != nullptr) {
      llvm::SmallVector<llvm::Constant*> lanes;
      for (int lane = 0; lane < lane_count_; ++lane)
        lanes.push_back(b_.getInt32(static_cast<std::uint32_t>(vector * lane_count_ + lane)));
      llvm::Value* limit = b_.CreateTrunc(first, b_.getInt32Ty());
      llvm::Value* is_new =
          lane_count_ == 1
              ? b_.CreateICmpUGE(lanes[0], limit)
              : b_.CreateICmpUGE(llvm::ConstantVector::get(lanes),
                                 b_.CreateVectorSplat(static_cast<unsigned>(lane_count_), limit));
      value = b_.CreateSelect(is_new, value, start_of(s));
    }
    b_.CreateStore(combined(b_.CreateLoad(value->getType(), partial), value), partial);
  }

  /// The last loop is reduced: lanes are combined in the end.
  void emit_sums() {
    start_partials();
    emit_reduced(kernel_.first_reduced());
    for (std::size_t s = 0; s < kernel_.stores.size(); ++s) {
      if (!kernel_.stores[s].is_reduced) continue;
      const Id access = kernel_.stores[s].access;
      b_.CreateAlignedStore(across_lanes(across_vectors(s)), at_[access], llvm::Align(size_of(dtype_of(s))));
    }
  }

  void emit_reduced(std::size_t l) {
    if (l < last_)
      return loop(index(0), index(extent(l)), 1,
                  [&](llvm::Value* i) { at_index(i, l, [&] { emit_reduced(l + 1); }); });
    compute(Depth::row, nullptr);
    const bool is_whole = extent(l) % kernel_.step() == 0;
    llvm::Value* most = index(extent(l) - kernel_.step());
    loop(index(0), index(extent(l)), kernel_.step(), [&](llvm::Value* i) {
      if (is_whole) return emit_vectors(i, nullptr);
      llvm::Value* at = b_.CreateSelect(b_.CreateICmpULT(i, most), i, most);
      emit_vectors(at, b_.CreateSub(i, at));
    });
  }

  llvm::Value* across_vectors(std::size_t s) {
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

  llvm::Value* across_lanes(llvm::Value* vector) {
    for (int width = lane_count_ / 2; width > 0; width /= 2) {
      llvm::SmallVector<int> low, high;
      for (int lane = 0; lane < width; ++lane) low.push_back(lane), high.push_back(width + lane);
      vector = combined(b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
    }
    return lane_count_ == 1 ? vector : b_.CreateExtractElement(vector, std::uint64_t{0});
  }

  /// The last loop is kept: its steps run outside the reduced loops.
  void emit_lane_sums() {
    const std::int64_t step = kernel_.step();
    overlapping_loop(index(0), index(extent(last_)), step, extent(last_) % step == 0, [&](llvm::Value* i) {
      start_partials();
      emit_reduced_lanes(kernel_.first_reduced(), i);
      for (std::size_t s = 0; s < kernel_.stores.size(); ++s)
        for (std::size_t vector = 0; vector < partials_[s].size(); ++vector) {
          llvm::Value* sums = b_.CreateLoad(ops_.type(dtype_of(s)), partials_[s][vector]);
          llvm::Value* at = b_.CreateAdd(i, index(static_cast<std::int64_t>(vector) * lane_count_));
          emit_store(kernel_.stores[s], sums, at);
        }
    });
  }

  void emit_reduced_lanes(std::size_t l, llvm::Value* i) {
    if (l < last_)
      return loop(index(0), index(extent(l)), 1,
                  [&](llvm::Value* k) { at_index(k, l, [&] { emit_reduced_lanes(l + 1, i); }); });
    compute(Depth::row, nullptr);
    emit_vectors(i, nullptr);
  }

  /// Computes the nodes of that depth; i is the index of the last loop.
  void compute(Depth depth, llvm::Value* i) {
    for (std::size_t k = 0; k < kernel_.body.size(); ++k)
      if (depths_[k] == depth) values_[k] = value_of(kernel_.body[k], i);
  }

  llvm::Value* value_of(const Node& node, llvm::Value* i) {
    switch (node.kind) {
      case Kind::constant: return ops_.constant(node.dtype, node.value);
      case Kind::load: return load(node.operands[0], i);
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

  llvm::Value* converted(llvm::Value* value, DType from, DType to) {
    if (from == to) return value;
    if (to == DType::boolean) return ops_.truth(value);
    if (from == DType::boolean) return ops_.number(value, to);
    return is_integer(from) ? b_.CreateSIToFP(value, ops_.type(to)) : b_.CreateFPCast(value, ops_.type(to));
  }

  /// A bool in memory is one byte.
  llvm::Value* from_memory(llvm::Value* value, DType dtype) {
    if (dtype != DType::boolean) return value;
    return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  }

  llvm::Value* load(Id k, llvm::Value* i) {
    const Access& access = kernel_.accesses[k];
    llvm::Type* element = memory_type(access.dtype);
    const llvm::Align alignment(size_of(access.dtype));
    const std::int64_t stride = blocks_[k] ? 1 : access.strides[last_];
    if (stride == 0) {
      llvm::Value* one = from_memory(b_.CreateAlignedLoad(element, at_[k], alignment), access.dtype);
      return lane_count_ == 1 ? one : b_.CreateVectorSplat(static_cast<unsigned>(lane_count_), one);
    }
    llvm::Value* position = stride == 1 ? i : b_.CreateMul(i, index(stride));
    llvm::Value* first = b_.CreateGEP(element, at_[k], position);
    llvm::Type* vector = ops_.vector_of(element);
    if (stride == 1 || lane_count_ == 1)
      return from_memory(b_.CreateAlignedLoad(vector, first, alignment), access.dtype);
    return from_memory(
        b_.CreateMaskedGather(vector, b_.CreateGEP(element, first, lane_positions(stride)), alignment),
        access.dtype);
  }

  /// 32 bits where they do, which is what gathers take.
  llvm::Value* lane_positions(std::int64_t stride) {
    const bool is_short = stride * lane_count_ <= std::numeric_limits<std::int32_t>::max();
    std::vector<llvm::Constant*> positions;
    for (std::int64_t lane = 0; lane < lane_count_; ++lane)
      positions.push_back(is_short ? b_.getInt32(static_cast<std::uint32_t>(lane * stride))
                                   : b_.getInt64(static_cast<std::uint64_t>(lane * stride)));
    return llvm::ConstantVector::get(positions);
  }

  void emit_store(const kernel::Store& store, llvm::Value* value, llvm::Value* i) {
    const Access& access = kernel_.accesses[store.access];
    llvm::Type* element = memory_type(access.dtype);
    if (access.dtype == DType::boolean) value = b_.CreateZExt(value, ops_.vector_of(element));
    const auto lanes = static_cast<std::size_t>(access.is_streamed ? lane_count_ : 1);
    llvm::StoreInst* instruction = b_.CreateAlignedStore(value, b_.CreateGEP(element, at_[store.access], i),
                                                         llvm::Align(size_of(access.dtype) * lanes));
    if (!access.is_streamed) return;
    llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
    instruction->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(module_.getContext(), one));
  }

  /// Streamed stores may be seen late by other threads unless they are waited for.
  void emit_fence() {
#if defined(__x86_64__)
    if (std::ranges::any_of(kernel_.accesses, &Access::is_streamed))
      b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
#endif
  }

  const Kernel& kernel_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  OpEmitter ops_;
  int lane_count_;
  std::size_t last_;  ///< the last loop
  llvm::Function* function_ = nullptr;
  std::vector<Depth> depths_;         ///< per node
  std::vector<llvm::Value*> values_;  ///< per node
  std::vector<llvm::Value*> at_;      ///< per access: its address at the indices of the loops entered
  std::vector<std::vector<llvm::Value*>> partials_;  ///< per store and vector, for reduced ones
  std::vector<llvm::Value*> blocks_;                 ///< per access: the block of transposed rows, or null
};

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const std::string& name) {
  Emitter(module, kernel, name).run();
}

}  // namespace loipe::jit
