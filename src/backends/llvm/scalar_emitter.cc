// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/scalar_emitter.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "backends/llvm/op_emitter.h"

namespace loipe::jit {

namespace {

using scalar::Id;
using scalar::Node;
using scalar::Op;

/// Nodes per function. LLVM's register allocation is not linear in the size of a
/// function; below this it does not show.
constexpr std::size_t kNodesPerFunction = 2000;

/// Chooses the cuts and the scratch slot of each value that crosses one.
class Cuts {
 public:
  explicit Cuts(const scalar::Program& program) : slot_(program.nodes.size(), kNone) {
    const std::size_t count = program.nodes.size();
    std::vector<std::size_t> last_chunk(count);
    for (std::size_t i = 0; i < count; ++i) {
      last_chunk[i] = chunk_of(i);
      for (int k = 0; k < scalar::arity(program.nodes[i].op); ++k)
        last_chunk[program.nodes[i].operands[k]] = chunk_of(i);
    }
    chunks_ = count == 0 ? 1 : chunk_of(count - 1) + 1;
    // Slots are reused once the last function that reads them has run.
    std::vector<std::vector<std::uint32_t>> expiring(chunks_ + 1);
    std::vector<std::uint32_t> free;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t chunk = chunk_of(i);
      if (i % kNodesPerFunction == 0 && chunk > 0)
        free.insert(free.end(), expiring[chunk - 1].begin(), expiring[chunk - 1].end());
      const bool is_leaf = program.nodes[i].op == Op::argument || program.nodes[i].op == Op::constant;
      if (is_leaf || last_chunk[i] == chunk) continue;
      if (free.empty()) {
        slot_[i] = slots_++;
      } else {
        slot_[i] = free.back();
        free.pop_back();
      }
      expiring[last_chunk[i]].push_back(slot_[i]);
    }
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::size_t chunks() const { return chunks_; }
  std::size_t slots() const { return slots_; }
  std::uint32_t slot(Id id) const { return slot_[id]; }
  static std::size_t chunk_of(std::size_t node) { return node / kNodesPerFunction; }

 private:
  std::vector<std::uint32_t> slot_;
  std::uint32_t slots_ = 0;
  std::size_t chunks_ = 1;
};

class Emitter {
 public:
  Emitter(llvm::Module& module, const scalar::Program& program, int lanes, std::string name)
      : module_(module),
        program_(program),
        lanes_(lanes),
        name_(std::move(name)),
        builder_(module.getContext()),
        ops_(module, builder_, lanes),
        cuts_(program),
        stores_(program.nodes.size()) {
    llvm::LLVMContext& context = module.getContext();
    scalar_ =
        program.dtype == DType::f64 ? llvm::Type::getDoubleTy(context) : llvm::Type::getFloatTy(context);
    number_ = lanes == 1 ? scalar_ : llvm::FixedVectorType::get(scalar_, static_cast<unsigned>(lanes));
    pointer_ = llvm::PointerType::getUnqual(context);
    offset_type_ = llvm::Type::getInt64Ty(context);
    signature_ = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                         {pointer_, pointer_, pointer_, offset_type_}, false);
    first_in_ = scalar::first_elements(program.arguments);
    first_out_ = scalar::first_elements(program.outputs);
    for (std::size_t s = 0; s < program.stores.size(); ++s) stores_[program.stores[s].value].push_back(s);
  }

  KernelShape run() {
    std::vector<llvm::Function*> chunks;
    for (std::size_t chunk = 0; chunk < cuts_.chunks(); ++chunk) chunks.push_back(emit_chunk(chunk));
    emit_loop(name_, chunks);
    if (stores_constants(program_)) {
      chunks.push_back(emit_constants());
      emit_loop(with_constants(name_), chunks);
    }
    return {lanes_, cuts_.slots()};
  }

 private:
  /// for (offset = begin; offset < end; offset += vector) all chunks
  void emit_loop(const std::string& name, const std::vector<llvm::Function*>& chunks) {
    llvm::LLVMContext& context = module_.getContext();
    llvm::FunctionType* type = llvm::FunctionType::get(
        llvm::Type::getVoidTy(context), {pointer_, pointer_, pointer_, offset_type_, offset_type_}, false);
    llvm::Function* kernel = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
    llvm::BasicBlock* entry = llvm::BasicBlock::Create(context, "entry", kernel);
    llvm::BasicBlock* tile = llvm::BasicBlock::Create(context, "tile", kernel);
    llvm::BasicBlock* done = llvm::BasicBlock::Create(context, "done", kernel);
    builder_.SetInsertPoint(entry);
    builder_.CreateCondBr(builder_.CreateICmpSLT(kernel->getArg(3), kernel->getArg(4)), tile, done);
    builder_.SetInsertPoint(tile);
    llvm::PHINode* offset = builder_.CreatePHI(offset_type_, 2);
    for (llvm::Function* chunk : chunks)
      builder_.CreateCall(chunk, {kernel->getArg(0), kernel->getArg(1), kernel->getArg(2), offset});
    llvm::Value* next = builder_.CreateAdd(offset, builder_.getInt64(vector_size()));
    offset->addIncoming(kernel->getArg(3), entry);
    offset->addIncoming(next, tile);
    builder_.CreateCondBr(builder_.CreateICmpSLT(next, kernel->getArg(4)), tile, done);
    builder_.SetInsertPoint(done);
    builder_.CreateRetVoid();
  }

  /// Goes on in a new function that computes a part of a tile.
  void begin_function(const std::string& part) {
    function_ =
        llvm::Function::Create(signature_, llvm::Function::InternalLinkage, name_ + "_" + part, module_);
    function_->addParamAttr(0, llvm::Attribute::NoAlias);
    function_->addParamAttr(1, llvm::Attribute::NoAlias);
    function_->addParamAttr(2, llvm::Attribute::NoAlias);
    builder_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
  }

  llvm::Function* emit_constants() {
    begin_function("constants");
    for (const scalar::Program::Output& output : program_.stores)
      if (program_.nodes[output.value].op == Op::constant)
        store(number(output.value), output_address(output));
    builder_.CreateRetVoid();
    return function_;
  }

  llvm::Function* emit_chunk(std::size_t chunk) {
    begin_function(std::to_string(chunk));
    first_ = chunk * kNodesPerFunction;
    const std::size_t last = std::min(first_ + kNodesPerFunction, program_.nodes.size());
    values_.assign(last - first_, nullptr);
    imported_.clear();
    for (std::size_t i = first_; i < last; ++i) {
      const Id id = static_cast<Id>(i);
      if (program_.nodes[i].op != Op::constant) values_[i - first_] = compute(program_.nodes[i]);
      if (cuts_.slot(id) != Cuts::kNone) store(number(id), scratch(cuts_.slot(id)));
      if (program_.nodes[i].op == Op::constant) continue;
      for (std::size_t s : stores_[id]) store(number(id), output_address(program_.stores[s]));
    }
    builder_.CreateRetVoid();
    return function_;
  }

  std::uint64_t vector_size() const { return size_of(program_.dtype) * static_cast<std::uint64_t>(lanes_); }
  /// Entry `element` of a table of addresses, moved to the tile.
  llvm::Value* tile_address(unsigned table, std::size_t element) {
    llvm::Value* entry = builder_.CreateConstInBoundsGEP1_64(pointer_, function_->getArg(table), element);
    return builder_.CreateGEP(builder_.getInt8Ty(), builder_.CreateLoad(pointer_, entry),
                              function_->getArg(3));
  }
  llvm::Value* input_address(const Node& node) {
    return tile_address(0, first_in_[node.operands[0]] + node.operands[1]);
  }
  llvm::Value* output_address(const scalar::Program::Output& store) {
    return tile_address(1, first_out_[store.output] + store.element);
  }
  llvm::Value* scratch(std::uint32_t slot) {
    return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), function_->getArg(2),
                                               slot * vector_size());
  }
  llvm::Value* load(llvm::Value* address) {
    return builder_.CreateAlignedLoad(number_, address, element_alignment());
  }
  void store(llvm::Value* value, llvm::Value* address) {
    builder_.CreateAlignedStore(value, address, element_alignment());
  }
  llvm::Align element_alignment() const { return llvm::Align(size_of(program_.dtype)); }

  llvm::Value* raw(Id id) {
    const Node& node = program_.nodes[id];
    if (node.op == Op::constant) return ops_.constant(program_.dtype, program_.constants[node.operands[0]]);
    if (id >= first_) return values_[id - first_];
    auto [place, is_new] = imported_.try_emplace(id, nullptr);
    if (is_new) place->second = node.op == Op::argument ? compute(node) : load(scratch(cuts_.slot(id)));
    return place->second;
  }
  llvm::Value* number(Id id) { return ops_.number(raw(id), program_.dtype); }

  llvm::Value* compute(const Node& node) {
    if (node.op == Op::argument) return load(input_address(node));
    std::vector<llvm::Value*> operands;
    for (int k = 0; k < scalar::arity(node.op); ++k) operands.push_back(raw(node.operands[k]));
    return ops_.emit(node.op, program_.dtype, operands);
  }

  llvm::Module& module_;
  const scalar::Program& program_;
  int lanes_;
  std::string name_;
  llvm::IRBuilder<> builder_;
  OpEmitter ops_;
  Cuts cuts_;
  std::vector<std::vector<std::size_t>> stores_;   ///< per node: the stores of its value
  std::vector<std::size_t> first_in_, first_out_;  ///< number of each argument's or output's first element
  llvm::Type *scalar_ = nullptr, *number_ = nullptr, *offset_type_ = nullptr;
  llvm::PointerType* pointer_ = nullptr;
  llvm::FunctionType* signature_ = nullptr;

  // Of the function being emitted.
  llvm::Function* function_ = nullptr;
  std::size_t first_ = 0;
  std::vector<llvm::Value*> values_;
  std::unordered_map<Id, llvm::Value*> imported_;
};

}  // namespace

std::string with_constants(const std::string& name) { return name + "_with_constants"; }

KernelShape emit_scalar_kernel(llvm::Module& module, const scalar::Program& program, int lanes,
                               const std::string& name) {
  return Emitter(module, program, lanes, name).run();
}

KernelShape kernel_shape(const scalar::Program& program, int lanes) { return {lanes, Cuts(program).slots()}; }

}  // namespace loipe::jit
