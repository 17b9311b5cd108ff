// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <span>
#include <string>

#include "backends/scalar/scalar_program.h"

namespace loipe::jit {

/// Emits scalar ops on vectors of `lanes` numbers. Truth values are vectors of i1.
/// exp, expm1, log and tanh are instructions; the other functions are calls of the C
/// library's vector functions (at most 4 ulp), or of libm for one lane.
class OpEmitter {
 public:
  OpEmitter(llvm::Module& module, llvm::IRBuilder<>& builder, int lanes)
      : module_(module), builder_(builder), lanes_(lanes) {}

  /// The type of a vector of such elements in registers; of a bool, i1.
  llvm::Type* type(DType dtype) const;
  llvm::Type* vector_of(llvm::Type* element) const;
  llvm::Constant* constant(DType dtype, double value) const;

  /// The op on operands of the dtype that it takes; truth values and numbers are
  /// converted into each other where the op wants the other.
  llvm::Value* emit(scalar::Op op, DType dtype, std::span<llvm::Value* const> operands);

  /// As a number: truth values are 0 and 1.
  llvm::Value* number(llvm::Value* value, DType dtype);
  llvm::Value* truth(llvm::Value* value);

 private:
  llvm::Value* arithmetic(scalar::Op op, llvm::Value* a, llvm::Value* b);
  llvm::Value* logic(scalar::Op op, llvm::Value* a, llvm::Value* b);
  llvm::Value* select(DType dtype, std::span<llvm::Value* const> operands);
  llvm::Value* extreme(llvm::Value* x, llvm::Value* y, llvm::CmpInst::Predicate order);
  llvm::Value* function(scalar::Op op, DType dtype, std::span<llvm::Value* const> operands);
  llvm::Value* call(scalar::Op op, DType dtype, std::span<llvm::Value* const> operands);
  llvm::Value* joined(llvm::Value* low, llvm::Value* high);
  llvm::Value* first_lanes(llvm::Value* value);

  llvm::Module& module_;
  llvm::IRBuilder<>& builder_;
  int lanes_;
};

/// Whether the C library of this process has the vector function; true for what is not
/// a call.
bool has_vector_function(scalar::Op op, DType dtype);

}  // namespace loipe::jit
