// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/scalar/scalar_program.h"
#include "ir/attributes.h"

namespace loipe::kernel {

using Id = std::uint32_t;

/// A tensor in memory as the loops see it: at index i its element lies
/// sum strides[loop]*i[loop] elements behind its base. The base is an argument of
/// the compiled function, so kernels that differ in buffers only are equal.
struct Access {
  DType dtype;
  Integers strides;
  bool is_written = false;
  /// Read along the loop before the last, where it is contiguous, by blocks that are
  /// turned around in registers.
  bool is_transposed = false;
  /// Written past the caches; every vector must be aligned to its size.
  bool is_streamed = false;
};

enum class Kind : std::uint8_t { load, constant, convert, scalar };

/// One value of the body, which runs once for every index. f32, f64 and bool are
/// computed on; i32 and i64 are only loaded and converted.
struct Node {
  Kind kind;
  DType dtype;                      ///< of the result
  scalar::Op op = scalar::Op::add;  ///< of a `scalar`
  std::array<Id, 3> operands{};     ///< of a `load`: the access; those not used are 0
  double value = 0;                 ///< of a `constant`
};

enum class Reduction : std::uint8_t { none, sum, max, min };

struct Store {
  Id access;
  Id value;
  bool is_reduced = false;
};

/// A nest of loops around straight-line code: what the dialects print.
///
/// The last loop runs over `vectors` vectors of `lanes` indices at a time. The last ones
/// overlap those before and compute the same elements again, so the loop must not be
/// shorter.
/// The range of the loop `chunked` falls into chunks of `chunk` indices, the last one
/// taking the rest. A tile is one chunk at one index of the loops before; tiles are
/// what the compiled function is called for, in any order and on any thread.
///
/// With a reduction, the `reduced_loops` loops before the last are reduced by it. What a
/// reduced store stores, for every index of the other loops, is the result over these
/// loops, in their order from the start of the reduction on. So every lane has a result of its own,
/// with the bits of a loop in memory. The chunked loop comes before the reduced ones.
struct Kernel {
  Shape extents;  ///< outermost loop first
  std::vector<Access> accesses;
  std::vector<Node> body;  ///< operands before users
  std::vector<Store> stores;
  Reduction reduction = Reduction::none;
  std::size_t reduced_loops = 0;

  int lanes = 1, vectors = 1;
  std::size_t chunked = 0;
  std::int64_t chunk = 1;
  /// Rows of the blocks in which transposed accesses are read, 0 without any.
  int block_rows = 0;

  std::size_t rank() const { return extents.size(); }
  /// The first reduced loop; the rank without any.
  std::size_t first_reduced() const { return reduced_loops == 0 ? rank() : rank() - reduced_loops - 1; }
  bool is_reduced(std::size_t loop) const {
    return loop >= first_reduced() && loop < first_reduced() + reduced_loops;
  }
  std::int64_t step() const { return std::int64_t{lanes} * vectors; }
  std::int64_t chunks() const;
  std::int64_t tiles() const;
};

/// The function that a dialect makes of a kernel: bases[k] belongs to access k, and
/// the tiles begin..end-1 are computed. Behind the accesses' bases lie the addresses
/// of the helpers that the code may call.
using Function = void (*)(std::byte* const* bases, std::int64_t begin, std::int64_t end);

/// to[row*columns + column] = from[row + column*stride], for elements of 4 and of 8 bytes.
/// Code that is kept for later processes must not contain their addresses.
struct Helpers {
  void (*transpose_f32)(const float* from, std::ptrdiff_t stride, float* to, std::ptrdiff_t rows,
                        std::ptrdiff_t columns);
  void (*transpose_f64)(const double* from, std::ptrdiff_t stride, double* to, std::ptrdiff_t rows,
                        std::ptrdiff_t columns);
};
inline constexpr std::size_t kHelpers = 2;

/// The kernel as text. Equal kernels have equal texts.
std::string to_text(const Kernel& kernel);

/// InternalError when the kernel is malformed.
void verify(const Kernel& kernel);

}  // namespace loipe::kernel
