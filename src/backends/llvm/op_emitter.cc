// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/op_emitter.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "backends/llvm/jit_session.h"
#include "backends/llvm/vector_math.h"
#include "base/check.h"

namespace loipe::jit {

using scalar::Op;

namespace {

/// Lanes of the C library's vector functions for the vectors of this CPU.
int function_lanes(DType dtype) { return vector_bytes() / static_cast<int>(size_of(dtype)); }

std::string plain_name(Op op, DType dtype) {
  return std::string(scalar::name(op)) + (dtype == DType::f32 ? "f" : "");
}

std::string vector_name(Op op, DType dtype) {
  const char* isa = vector_bytes() == 64 ? "e" : vector_bytes() == 32 ? "d" : "b";
  return std::string("_ZGV") + isa + "N" + std::to_string(function_lanes(dtype)) +
         (scalar::arity(op) == 2 ? "vv_" : "v_") + plain_name(op, dtype);
}

bool is_inline(Op op) { return op == Op::exp || op == Op::expm1 || op == Op::log || op == Op::tanh; }

}  // namespace

bool has_vector_function(Op op, DType dtype) {
  if (!scalar::is_function(op) || is_inline(op)) return true;
  static void* const library = ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr && ::dlsym(library, vector_name(op, dtype).c_str()) != nullptr;
}

llvm::Type* OpEmitter::vector_of(llvm::Type* element) const {
  return lanes_ == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_));
}

llvm::Type* OpEmitter::type(DType dtype) const {
  switch (dtype) {
    case DType::f32: return vector_of(builder_.getFloatTy());
    case DType::f64: return vector_of(builder_.getDoubleTy());
    case DType::boolean: return vector_of(builder_.getInt1Ty());
    case DType::i32: return vector_of(builder_.getInt32Ty());
    case DType::i64: return vector_of(builder_.getInt64Ty());
  }
  throw InternalError("no dtype");
}

llvm::Constant* OpEmitter::constant(DType dtype, double value) const {
  if (dtype == DType::boolean) return llvm::ConstantInt::get(type(dtype), value != 0);
  return llvm::ConstantFP::get(type(dtype), value);
}

llvm::Value* OpEmitter::number(llvm::Value* value, DType dtype) {
  return value->getType()->isIntOrIntVectorTy() ? builder_.CreateUIToFP(value, type(dtype)) : value;
}

llvm::Value* OpEmitter::truth(llvm::Value* value) {
  if (value->getType()->isIntOrIntVectorTy()) return value;
  return builder_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()));
}

llvm::Value* OpEmitter::emit(Op op, DType dtype, std::span<llvm::Value* const> operands) {
  if (op == Op::select) return select(dtype, operands);
  if (op >= Op::logical_and && op <= Op::logical_not)
    return logic(op, truth(operands[0]), truth(operands[operands.size() - 1]));
  std::vector<llvm::Value*> numbers;
  for (llvm::Value* operand : operands) numbers.push_back(number(operand, dtype));
  return scalar::is_function(op) ? function(op, dtype, numbers)
                                 : arithmetic(op, numbers[0], numbers[numbers.size() - 1]);
}

llvm::Value* OpEmitter::arithmetic(Op op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case Op::add: return builder_.CreateFAdd(a, b);
    case Op::sub: return builder_.CreateFSub(a, b);
    case Op::mul: return builder_.CreateFMul(a, b);
    case Op::div: return builder_.CreateFDiv(a, b);
    case Op::neg: return builder_.CreateFNeg(a);
    case Op::abs: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    case Op::sqrt: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Op::floor: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case Op::ceil: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    case Op::round: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, a);
    case Op::max: return extreme(a, b, llvm::CmpInst::FCMP_OGT);
    case Op::min: return extreme(a, b, llvm::CmpInst::FCMP_OLT);
    case Op::eq: return builder_.CreateFCmpOEQ(a, b);
    case Op::ne: return builder_.CreateFCmpUNE(a, b);
    case Op::lt: return builder_.CreateFCmpOLT(a, b);
    case Op::le: return builder_.CreateFCmpOLE(a, b);
    case Op::gt: return builder_.CreateFCmpOGT(a, b);
    case Op::ge: return builder_.CreateFCmpOGE(a, b);
    default: throw InternalError("a scalar op has no code");
  }
}

llvm::Value* OpEmitter::logic(Op op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case Op::logical_and: return builder_.CreateAnd(a, b);
    case Op::logical_or: return builder_.CreateOr(a, b);
    case Op::logical_xor: return builder_.CreateXor(a, b);
    default: return builder_.CreateNot(a);
  }
}

llvm::Value* OpEmitter::select(DType dtype, std::span<llvm::Value* const> operands) {
  llvm::Value *x = operands[1], *y = operands[2];
  if (x->getType() != y->getType()) x = number(x, dtype), y = number(y, dtype);
  return builder_.CreateSelect(truth(operands[0]), x, y);
}

/// NaN in the first operand stays; one in the second is never smaller or larger.
llvm::Value* OpEmitter::extreme(llvm::Value* x, llvm::Value* y, llvm::CmpInst::Predicate order) {
  llvm::Value* first = builder_.CreateOr(builder_.CreateFCmpUNO(x, x), builder_.CreateFCmp(order, x, y));
  return builder_.CreateSelect(first, x, y);
}

llvm::Value* OpEmitter::function(Op op, DType dtype, std::span<llvm::Value* const> operands) {
  if (lanes_ == 1) return call(op, dtype, operands);
  VectorMath math(builder_, dtype, lanes_);
  switch (op) {
    case Op::exp: return math.exp(operands[0]);
    case Op::expm1: return math.expm1(operands[0]);
    case Op::log: return math.log(operands[0]);
    case Op::tanh: return math.tanh(operands[0]);
    default: break;
  }
  // The vector functions take full vectors: narrow ones are filled up with their own
  // elements, wide ones go in parts.
  const int width = function_lanes(dtype);
  std::vector<llvm::Value*> parts;
  for (int first = 0; first < lanes_; first += width) {
    std::vector<llvm::Value*> part;
    for (llvm::Value* operand : operands) {
      llvm::SmallVector<int> lanes;
      for (int lane = 0; lane < width; ++lane) lanes.push_back((first + lane) % lanes_);
      part.push_back(lanes_ == width ? operand : builder_.CreateShuffleVector(operand, lanes));
    }
    parts.push_back(call(op, dtype, part));
  }
  while (parts.size() > 1) {
    std::vector<llvm::Value*> pairs;
    for (std::size_t k = 0; k + 1 < parts.size(); k += 2) pairs.push_back(joined(parts[k], parts[k + 1]));
    parts = std::move(pairs);
  }
  return lanes_ < width ? first_lanes(parts[0]) : parts[0];
}

llvm::Value* OpEmitter::call(Op op, DType dtype, std::span<llvm::Value* const> operands) {
  require(scalar::is_function(op), "a scalar op has no code");
  llvm::Type* type = operands[0]->getType();
  llvm::FunctionType* signature =
      llvm::FunctionType::get(type, std::vector<llvm::Type*>(operands.size(), type), false);
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(lanes_ == 1 ? plain_name(op, dtype) : vector_name(op, dtype), signature);
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotAccessMemory();
  return builder_.CreateCall(callee, llvm::ArrayRef(operands.data(), operands.size()));
}

llvm::Value* OpEmitter::joined(llvm::Value* low, llvm::Value* high) {
  llvm::SmallVector<int> lanes;
  const auto count = static_cast<int>(llvm::cast<llvm::FixedVectorType>(low->getType())->getNumElements());
  for (int lane = 0; lane < 2 * count; ++lane) lanes.push_back(lane);
  return builder_.CreateShuffleVector(low, high, lanes);
}

llvm::Value* OpEmitter::first_lanes(llvm::Value* value) {
  llvm::SmallVector<int> lanes;
  for (int lane = 0; lane < lanes_; ++lane) lanes.push_back(lane);
  return builder_.CreateShuffleVector(value, lanes);
}

}  // namespace loipe::jit
