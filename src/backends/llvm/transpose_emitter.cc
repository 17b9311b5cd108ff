// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/transpose_emitter.h"

#include <string>
#include <vector>

#include "base/check.h"

namespace loipe::jit {

namespace {

using Vectors = std::vector<llvm::Value*>;

llvm::Type* element_type(llvm::LLVMContext& context, unsigned bytes) {
  switch (bytes) {
    case 1: return llvm::Type::getInt8Ty(context);
    case 4: return llvm::Type::getFloatTy(context);
    case 8: return llvm::Type::getDoubleTy(context);
    default: throw InternalError("no transpose of such elements");
  }
}

/// Turns a square matrix of vectors around: for every power of two d, elements whose
/// row and column differ in that bit change places with their mirror images.
void transpose_square(llvm::IRBuilder<>& builder, Vectors& rows) {
  const int size = static_cast<int>(rows.size());
  for (int d = 1; d < size; d *= 2) {
    llvm::SmallVector<int> low, high;
    for (int lane = 0; lane < size; ++lane) {
      low.push_back(lane & d ? size + lane - d : lane);
      high.push_back(lane & d ? size + lane : lane + d);
    }
    for (int row = 0; row < size; ++row) {
      if (row & d) continue;
      llvm::Value *a = rows[static_cast<std::size_t>(row)], *b = rows[static_cast<std::size_t>(row + d)];
      rows[static_cast<std::size_t>(row)] = builder.CreateShuffleVector(a, b, low);
      rows[static_cast<std::size_t>(row + d)] = builder.CreateShuffleVector(a, b, high);
    }
  }
}

/// The vectors one after the other as one.
llvm::Value* concatenated(llvm::IRBuilder<>& builder, Vectors parts) {
  while (parts.size() > 1) {
    const auto count =
        static_cast<int>(llvm::cast<llvm::FixedVectorType>(parts[0]->getType())->getNumElements());
    llvm::SmallVector<int> lanes;
    for (int lane = 0; lane < 2 * count; ++lane) lanes.push_back(lane);
    Vectors pairs;
    for (std::size_t k = 0; k < parts.size(); k += 2)
      pairs.push_back(builder.CreateShuffleVector(parts[k], parts[k + 1], lanes));
    parts = std::move(pairs);
  }
  return parts[0];
}

void emit_body(llvm::Function* function, llvm::Type* element, unsigned bytes, int lanes, int rows) {
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(function->getContext(), "entry", function));
  llvm::Type* run = llvm::FixedVectorType::get(element, static_cast<unsigned>(rows));
  const auto address = [&](unsigned base, int k) {
    return builder.CreateGEP(
        element, function->getArg(base),
        builder.CreateMul(function->getArg(base + 1), builder.getInt64(static_cast<std::uint64_t>(k))));
  };
  std::vector<Vectors> squares;
  for (int first = 0; first < lanes; first += rows) {
    Vectors& square = squares.emplace_back();
    for (int lane = first; lane < first + rows; ++lane)
      square.push_back(builder.CreateAlignedLoad(run, address(0, lane), llvm::Align(bytes)));
    transpose_square(builder, square);
  }
  for (int row = 0; row < rows; ++row) {
    Vectors parts;
    for (const Vectors& square : squares) parts.push_back(square[static_cast<std::size_t>(row)]);
    builder.CreateAlignedStore(concatenated(builder, parts), address(2, row), llvm::Align(bytes));
  }
  builder.CreateRetVoid();
}

}  // namespace

llvm::Function* transpose_function(llvm::Module& module, unsigned bytes, int lanes, int rows) {
  const std::string name =
      "transpose_" + std::to_string(bytes) + "_" + std::to_string(lanes) + "x" + std::to_string(rows);
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::LLVMContext& context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::getUnqual(context), *index = llvm::Type::getInt64Ty(context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, index, pointer, index}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  emit_body(function, element_type(context, bytes), bytes, lanes, rows);
  return function;
}

}  // namespace loipe::jit
