// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "accumulation/accumulate.h"
#include "jacobian/sparse_pattern.h"
#include "jacobian/structured.h"

namespace loipe {

/// How a compiled Jacobian gives its blocks.
enum class BlockValues : std::uint8_t {
  all,      ///< the dense block, output + argument
  entries,  ///< those of its pattern, [nnz]; with a batch axis [B, nnz]
  terms,    ///< the tensors of its structured form, as many as that has
};

/// The pattern of block (output, k): of one example where the program has a batch axis.
SparsePattern block_pattern(const Program& primal, const AccumulationRequest& request,
                            const Accumulation& accumulation, std::size_t output, std::size_t k);
/// Of all blocks, output by output.
std::vector<SparsePattern> block_patterns(const Program& primal, const AccumulationRequest& request,
                                          const Accumulation& accumulation);

/// An accumulation program that returns the entries of the patterns behind the outputs,
/// output by output. What only zeros need is dead code then.
Program with_entries(const Program& primal, const AccumulationRequest& request,
                     const Accumulation& accumulation, const std::vector<SparsePattern>& patterns);

/// The structured form of all blocks, output by output, and an accumulation program that
/// returns their tensors behind the outputs.
struct ProgramOfTerms {
  std::vector<StructuredBlock> blocks;
  Program program;
};
ProgramOfTerms with_terms(const Program& primal, const AccumulationRequest& request,
                          const Accumulation& accumulation);

}  // namespace loipe
