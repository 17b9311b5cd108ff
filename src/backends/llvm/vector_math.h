// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ir/attributes.h"

namespace loipe::jit {

/// exp and what follows from it as instructions that fuse with their neighbours, in
/// place of a call: the polynomials and special cases of cpu/kernels/math.inc, where
/// they are explained. docs/guides/accuracy.md states the errors.
class VectorMath {
 public:
  /// Of numbers of one floating dtype.
  VectorMath(llvm::IRBuilder<>& builder, DType dtype, int lanes);

  llvm::Value* exp(llvm::Value* x);
  llvm::Value* expm1(llvm::Value* x);
  llvm::Value* tanh(llvm::Value* x);
  llvm::Value* log(llvm::Value* x);

 private:
  struct Limits;
  /// x = power ln2 + r, tail = e^r - 1.
  struct ReducedExp {
    llvm::Value *tail, *power;
  };

  ReducedExp reduced_exp(llvm::Value* x);
  llvm::Value* power_of_two(llvm::Value* n);
  llvm::Value* log_of_fraction(llvm::Value* f, llvm::Value* exponent);
  llvm::Value* number(double value);
  llvm::Value* integer(std::int64_t value);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  /// The numbers' bits as integers, and back.
  llvm::Value* bits(llvm::Value* x) { return b_.CreateBitCast(x, integer_); }
  llvm::Value* from_bits(llvm::Value* n) { return b_.CreateBitCast(n, number_); }

  llvm::IRBuilder<>& b_;
  const Limits& limits_;
  llvm::Type *number_, *integer_;
};

}  // namespace loipe::jit
