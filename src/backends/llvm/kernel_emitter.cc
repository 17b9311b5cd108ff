// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/kernel_emitter.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <optional>

#include "backends/llvm/kernel_body.h"
#include "backends/llvm/partial_results.h"
#include "base/check.h"

namespace loipe::jit {

namespace {

using kernel::Access;
using kernel::Id;
using kernel::Kernel;

/// Indices of the last loop that a block of transposed rows has at most.
constexpr std::int64_t kBlockWidth = 128;

class Emitter {
 public:
  Emitter(llvm::Module& module, const Kernel& kernel, const std::string& name)
      : kernel_(kernel),
        module_(module),
        b_(module.getContext()),
        body_(module, b_, kernel),
        lane_count_(kernel.lanes),
        last_(kernel.rank() - 1) {
    llvm::Type *pointer = b_.getPtrTy(), *index = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, index, index}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    function_->addParamAttr(0, llvm::Attribute::NoAlias);
  }

  void run() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
    for (std::size_t k = 0; k < kernel_.accesses.size(); ++k) {
      llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(0), k);
      at_.push_back(b_.CreateLoad(b_.getPtrTy(), slot));
      blocks_.push_back(kernel_.accesses[k].is_transposed ? new_block(kernel_.accesses[k]) : nullptr);
    }
    partials_.emplace(b_, body_.ops(), kernel_);
    body_.compute(Depth::everywhere, at_, nullptr);
    loop(function_->getArg(1), function_->getArg(2), 1, [&](llvm::Value* tile) { emit_tile(tile); });
    emit_fence();
    b_.CreateRetVoid();
    partials_->promote(*function_);
  }

 private:
  llvm::Value* index(std::int64_t value) { return b_.getInt64(static_cast<std::uint64_t>(value)); }
  std::int64_t extent(std::size_t loop) const { return kernel_.extents[loop]; }

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

  llvm::Value* moved(std::size_t access, llvm::Value* from, llvm::Value* i, std::size_t loop) {
    const Access& a = kernel_.accesses[access];
    if (a.strides[loop] == 0) return from;
    return b_.CreateGEP(body_.memory_type(a.dtype), from, b_.CreateMul(i, index(a.strides[loop])));
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
    if (l == kernel_.first_reduced()) return emit_sums();
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
    auto* type = llvm::ArrayType::get(body_.memory_type(access.dtype),
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
            at_[k] = b_.CreateGEP(body_.memory_type(kernel_.accesses[k].dtype), blocks_[k],
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
    body_.compute(Depth::row, at_, nullptr);
    overlapping_loop(from, to, kernel_.step(), divides, [&](llvm::Value* i) { emit_vectors(i); });
  }

  /// One step of the last loop.
  void emit_vectors(llvm::Value* i) {
    for (int vector = 0; vector < kernel_.vectors; ++vector) {
      const std::int64_t lane = std::int64_t{vector} * lane_count_;
      llvm::Value* at = b_.CreateAdd(i, index(lane));
      body_.compute(Depth::element, at_, at);
      for (std::size_t s = 0; s < kernel_.stores.size(); ++s) {
        const kernel::Store& store = kernel_.stores[s];
        if (store.is_reduced) partials_->add(s, vector, body_.value(store.value));
        else body_.store(store.access, body_.value(store.value), at_, at);
      }
    }
  }

  // Reductions -------------------------------------------------------------------

  /// The steps of the last loop run outside the reduced loops.
  void emit_sums() {
    const std::int64_t step = kernel_.step();
    overlapping_loop(index(0), index(extent(last_)), step, extent(last_) % step == 0, [&](llvm::Value* i) {
      partials_->start();
      emit_reduced(kernel_.first_reduced(), i);
      for (std::size_t s = 0; s < kernel_.stores.size(); ++s)
        for (int vector = 0; kernel_.stores[s].is_reduced && vector < kernel_.vectors; ++vector) {
          llvm::Value* at = b_.CreateAdd(i, index(std::int64_t{vector} * lane_count_));
          body_.store(kernel_.stores[s].access, partials_->of_vector(s, vector), at_, at);
        }
    });
  }

  void emit_reduced(std::size_t l, llvm::Value* i) {
    if (l < last_)
      return loop(index(0), index(extent(l)), 1,
                  [&](llvm::Value* k) { at_index(k, l, [&] { emit_reduced(l + 1, i); }); });
    body_.compute(Depth::row, at_, nullptr);
    emit_vectors(i);
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
  KernelBody body_;
  int lane_count_;
  std::size_t last_;  ///< the last loop
  llvm::Function* function_ = nullptr;
  Addresses at_;  ///< per access: its address at the indices of the loops entered
  std::optional<PartialResults> partials_;
  std::vector<llvm::Value*> blocks_;  ///< per access: the block of transposed rows, or null
};

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const std::string& name) {
  Emitter(module, kernel, name).run();
}

}  // namespace loipe::jit
