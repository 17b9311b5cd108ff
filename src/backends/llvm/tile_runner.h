// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/llvm/scalar_emitter.h"
#include "backends/llvm/transpose_emitter.h"
#include "backends/scalar/scalar_program.h"

namespace loipe::jit {

/// What is known about the runs of a kernel before the first one.
struct TilePlan {
  /// An output element that is the same number in every example.
  struct Constant {
    std::size_t output;
    std::size_t element;  ///< of the output
    double value;
  };
  /// Rows begin this far apart: a few tiles of every element stay in the first cache.
  std::size_t row_bytes() const { return static_cast<std::size_t>(tiles_per_block | 1) * vector_bytes; }

  std::size_t result_bytes(std::int64_t examples) const {
    return first_out.back() * element_bytes * static_cast<std::size_t>(examples);
  }

  std::size_t element_bytes = 0, vector_bytes = 0, scratch_bytes = 0;
  std::int64_t lanes = 1, tiles_per_block = 1;
  std::vector<std::size_t> first_in, first_out;  ///< see scalar::first_elements
  std::vector<std::size_t> wide_out;             ///< outputs of several elements
  std::vector<Constant> constants;
  Kernel kernel = nullptr;
  Kernel kernel_with_constants = nullptr;  ///< null without constants
  /// Per argument and per output; null for those of one element.
  std::vector<Transposition> to_rows, to_examples;
  /// Of the workspace of one thread; the tables and rows in it lie at these places.
  std::size_t workspace_bytes = 0, out_table = 0, scratch = 0, rows_in = 0, rows_out = 0;
};

/// The plan for a program, but for the code.
TilePlan plan_tiles(const scalar::Program& program, const KernelShape& shape,
                    std::int64_t most_tiles_per_block = 8);

/// Writes into a fresh workspace what no run changes.
void prepare_workspace(const TilePlan& plan, std::byte* workspace);

/// One thread's part in one run. The kernel reads and writes rows of examples at one
/// table of addresses. For a structure of arrays these rows are the caller's. The
/// examples of an array of structures pass through rows of the workspace, a few tiles at
/// a time, and so does a last tile that is not full.
class TileRunner {
 public:
  /// Where the results stay in a cache, constants are best written with the rest of a tile; elsewhere
  /// row by row, because the C library does not read a long row before it writes it.
  TileRunner(const TilePlan& plan, const BatchRun& run, bool results_stay_in_cache, std::byte* workspace);

  /// Examples first..last-1; first is a multiple of the lanes.
  void operator()(std::int64_t first, std::int64_t last);

 private:
  template <class T>
  void write_constants(std::int64_t first, std::int64_t last);
  template <class T>
  void fill_shared(std::size_t argument);
  template <class T>
  void run_tail(std::int64_t first, std::int64_t count);
  void bind();
  void run_block(std::int64_t first, std::int64_t tiles);

  std::size_t in_size(std::size_t k) const { return plan_.first_in[k + 1] - plan_.first_in[k]; }
  std::size_t out_size(std::size_t k) const { return plan_.first_out[k + 1] - plan_.first_out[k]; }
  /// Whether the elements of one example are strided in the caller's memory.
  bool has_rows_in(std::size_t k) const { return in_rows_ || in_size(k) == 1; }
  bool has_rows_out(std::size_t k) const { return out_rows_ || out_size(k) == 1; }
  std::byte* row_in(std::size_t p) const { return workspace_ + plan_.rows_in + p * plan_.row_bytes(); }
  std::byte* row_out(std::size_t q) const { return workspace_ + plan_.rows_out + q * plan_.row_bytes(); }
  const void** in_table() const { return reinterpret_cast<const void**>(workspace_); }
  void** out_table() const { return reinterpret_cast<void**>(workspace_ + plan_.out_table); }
  std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * plan_.element_bytes;
  }

  const TilePlan& plan_;
  const BatchRun& run_;
  std::byte* workspace_;
  bool in_rows_, out_rows_;
  bool writes_constants_by_tile_;  ///< by the kernel; else row by row, before it
  bool uses_rows_ = false;         ///< whether anything passes through the workspace
  bool is_bound_ = false;          ///< whether the tables are those of full tiles
};

}  // namespace loipe::jit
