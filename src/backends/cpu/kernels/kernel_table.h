// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The interface of the vector kernels. They are compiled once per instruction set,
// in translation units that may include nothing but this header and the *.inc
// files: any inline function of another header could be emitted there with
// instructions that the running CPU lacks, and be the copy that the linker keeps.

namespace loipe::cpu {

enum class Opcode : std::uint8_t {
#define LOIPE_OPCODE(name, operands) name,
#include "backends/cpu/kernels/opcodes.def"
#undef LOIPE_OPCODE
  count
};
inline constexpr int kOpcodeCount = static_cast<int>(Opcode::count);

/// out[i] = op(a[i], b[i], c[i]) for i < n; out overlaps no operand.
using MapKernel = void (*)(void* out, const void* a, const void* b, const void* c, std::ptrdiff_t n);

/// One register tile of a matrix product: c[r][j] = sum over k of a[r][k] * b[k][j],
/// added to c if `accumulate`, in the order of k.
template <class T>
struct ProductTile {
  const T* a;
  std::ptrdiff_t a_row, a_k;  ///< distances of neighbours in a along r and k
  const T* b;                 ///< neighbours along j lie side by side, in each vector
  std::ptrdiff_t b_k;
  std::ptrdiff_t b_vector;  ///< from one vector of neighbours to the next
  T* c;                     ///< neighbours along j lie side by side, in each vector
  std::ptrdiff_t c_row;
  std::ptrdiff_t c_vector;
  std::ptrdiff_t depth;  ///< extent of k
  bool accumulate;
  const T* next_a;  ///< what will be a next, to be fetched by lines along k (a_k = 1); null: nothing
};

/// Copies a matrix in[k][j] into `columns` of the columns of out[k][j], whose rows are `width` apart.
/// The columns behind them, up to `filled`, become zero.
template <class T>
struct PackedPanel {
  T* out;
  const T* in;
  std::ptrdiff_t depth, columns;
  std::ptrdiff_t in_k, in_column;  ///< distances of neighbours in `in`
  std::ptrdiff_t width, filled;
};

/// out[j*out_step + i] = in[j*in_step + r*row + i] reduced over r < rows in the order of r, for
/// i < n and j < count; `continues` starts from what is in out.
template <class T>
struct RowReduction {
  T* out;
  const T* in;
  std::ptrdiff_t out_step, in_step, count;
  std::ptrdiff_t row, rows, n;
  bool continues;
};

/// out[l] = sum over k of a[a_at[k] + l] * b[b_at[k] + l] for l < n, in the order
/// of k; with `a_varies` or `b_varies` false that operand lacks the "+ l".
template <class T>
struct LaneSums {
  T* out;
  std::ptrdiff_t n;
  const T* a;
  const T* b;
  const std::int64_t* a_at;
  const std::int64_t* b_at;
  std::ptrdiff_t depth;
  bool a_varies, b_varies;
};

enum class Reduction : std::uint8_t { sum, max, min, count };

inline constexpr int kMaxTileRows = 8;
inline constexpr int kMaxTileVectors = 2;

template <class T>
struct FloatKernels {
  int lanes;      ///< elements of one vector
  int tile_rows;  ///< largest rows of a ProductTile; its columns are 1 or 2 vectors
  /// By rows, by vectors, and by whether it fetches next_a.
  void (*product_tile[kMaxTileRows][kMaxTileVectors][2])(const ProductTile<T>&);
  void (*pack)(const PackedPanel<T>&);
  /// to[row*columns + column] = from[row + column*stride]
  void (*transpose)(const T* from, std::ptrdiff_t stride, T* to, std::ptrdiff_t rows, std::ptrdiff_t columns);
  /// The same with rows of the result that are `to_row` apart.
  void (*transpose_into)(const T* from, std::ptrdiff_t stride, T* to, std::ptrdiff_t to_row,
                         std::ptrdiff_t rows, std::ptrdiff_t columns);
  void (*lane_sums)(const LaneSums<T>&);
  /// Sum of a[i]*b[i]. Like reduce, a tree over vectors that depends on n alone.
  T (*dot)(const T* a, const T* b, std::ptrdiff_t n);
  T (*reduce[static_cast<int>(Reduction::count)])(const T* a, std::ptrdiff_t n);
  /// out[i] = op(out[i], a[i])
  void (*reduce_into[static_cast<int>(Reduction::count)])(T* out, const T* a, std::ptrdiff_t n);
  void (*reduce_rows[static_cast<int>(Reduction::count)])(const RowReduction<T>&);
};

struct KernelTable {
  const char* name;
  MapKernel map[kOpcodeCount][2];  ///< [opcode][0: f32, 1: f64]
  FloatKernels<float> f32;
  FloatKernels<double> f64;

  template <class T>
  const FloatKernels<T>& floats() const {
    if constexpr (sizeof(T) == sizeof(float)) return f32;
    else return f64;
  }
};

const KernelTable& baseline_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();

}  // namespace loipe::cpu
