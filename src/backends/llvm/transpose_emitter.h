// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>
#include <string>

namespace llvm {
class Module;
}

namespace loipe::jit {

/// Moves `tiles` tiles between rows, where a vector holds one element of `lanes` examples,
/// and an array of structures, where the `elements` of an example are contiguous:
///
///   rows + e*row_bytes + t*vector       lanes of element e in tile t
///   examples + (t*lanes + l)*elements   the elements of lane l in tile t
using Transposition = void (*)(void* rows, void* examples, std::int64_t row_bytes, std::int64_t tiles);

enum class Direction { rows_to_examples, examples_to_rows };

/// Emits a function NAME of type Transposition that shuffles in registers. Rows are aligned
/// to vectors, examples to elements. `lanes` is a power of two, `elements` at least 2.
void emit_transposition(llvm::Module& module, DType dtype, int lanes, std::int64_t elements,
                        Direction direction, const std::string& name);

}  // namespace loipe::jit
