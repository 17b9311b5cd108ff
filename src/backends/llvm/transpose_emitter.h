// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace loipe::jit {

/// The function of the module
///
///   void (const E* from, int64 from_stride, E* to, int64 to_stride)
///
/// for elements of `bytes` bytes: to[row*to_stride + lane] = from[row + lane*from_stride]
/// for row < rows and lane < lanes, through registers; strides are in elements.
/// rows divides lanes, both are powers of two. It is emitted once per module.
llvm::Function* transpose_function(llvm::Module& module, unsigned bytes, int lanes, int rows);

}  // namespace loipe::jit
