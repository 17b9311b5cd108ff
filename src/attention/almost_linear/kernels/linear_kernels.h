// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The interface of the kernels of almost-linear attention. They are compiled once per instruction set, in
// translation units that may include nothing but this header and *.inc files
// (backends/cpu/kernels/kernel_table.h says why).
//
// Tokens go in panels of `lanes`; what belongs to a panel is an array [rows][lanes], whose rows are
// coordinates, features or columns of values. What is summed over the tokens of a panel has its other
// operand in column blocks (pack_columns); columns are padded with zeros to multiples of kColumnGroup.

namespace loipe::attention::almost_linear {

inline constexpr std::ptrdiff_t kColumnGroup = 8;

/// The monomials of degree at most `degree` in x_0 .. x_{size-1}, by degree, then by their first (least)
/// index. Those of degree p whose first index is j are x_j times those of degree p - 1 whose first index is
/// at least j, in the same order: a suffix of their block.
struct Monomials {
  int degree;
  std::ptrdiff_t size;
  /// [degree + 1][size + 1]: the first monomial of degree p with first index >= j; at j = size the end of
  /// degree p. Degree 0 is one monomial, the constant, of every suffix.
  const std::ptrdiff_t* starts;
  /// Of each monomial but the constant, its first index j and its parent, the monomial that x_j is times.
  const std::int32_t *coordinates, *parents;

  std::ptrdiff_t start(int p, std::ptrdiff_t j) const { return starts[p * (size + 1) + j]; }
  std::ptrdiff_t end(int p) const { return start(p, size); }
};

/// out[f - first] = monomial f of x for first <= f < first + count, all of one degree, at least 1.
template <class T>
struct Expansion {
  const Monomials* monomials;
  std::ptrdiff_t first, count;
  const T* x;    ///< [size][lanes]
  const T* low;  ///< [monomials of lower degree][lanes]
  T* out;        ///< [count][lanes]
};

/// What arrives at the monomials first <= f < first + count, all of one degree, d_f = sum over k < depth of
/// a[f - first][k] d[k], and from their children, goes on to their coordinates and parents:
/// d_x += d_f parent, d_low[parent] += d_f x.
template <class T>
struct FeatureDerivative {
  const T* a;
  std::ptrdiff_t stride;  ///< of the rows of a
  const T* d;             ///< [depth][lanes]
  std::ptrdiff_t depth;
  const Monomials* monomials;
  std::ptrdiff_t first, count;
  const T* x;
  const T* low;
  T* d_x;             ///< [size][lanes]
  T* d_low;           ///< as low
  bool has_children;  ///< what arrives from these is in d_low[f]
};

/// out[r][lanes] = sum over k < depth of a(r, k) b[k][lanes], times factor[r][lanes] unless that is null,
/// added to out if `accumulate`.
template <class T>
struct LaneProduct {
  T* out;
  const T* a;
  std::ptrdiff_t stride;  ///< multiply_columns: a(r, k) = a[r + k stride]; multiply_rows: a[r stride + k]
  const T* b;
  const T* factor;
  std::ptrdiff_t rows, depth;
  bool accumulate;
};

/// out[r][lanes] += sum over first <= f < first + count of a[f - first][r] (monomial f of x)[lanes]; the
/// monomials, of one degree, are made on the way from those of lower degree.
template <class T>
struct FeatureProduct {
  T* out;
  const T* a;
  std::ptrdiff_t stride;  ///< of the rows of a
  std::ptrdiff_t rows;
  const Monomials* monomials;
  std::ptrdiff_t first, count;
  const T* x;
  const T* low;
};

/// out[r][c] = sum over panels p and their lanes t of a_p[r][t] b_p[t][c], added to out if `accumulate`;
/// with weights out[r][c] += weights[r] (this sum).
template <class T>
struct TokenProduct {
  T* out;
  std::ptrdiff_t out_row;
  const T* a;  ///< [rows][lanes] of panel p at a + p a_panel
  std::ptrdiff_t a_panel;
  const T* b;  ///< column blocks of panel p at b + p b_panel
  std::ptrdiff_t b_panel;
  std::ptrdiff_t rows, columns, panels;
  bool accumulate;
  const T* weights;  ///< [rows]; null: none
  const T* last;     ///< numbers of column `columns`, lanes of panel p at last + p last_panel; null: none
  std::ptrdiff_t last_panel;
};

/// Weights of pairs, lanes are queries: for key j and lane t, x = scores[j][t] and the distance
/// i - j = t - j + distance.
template <class T>
struct PairWeights {
  const T* scores;  ///< [keys][lanes]
  std::ptrdiff_t keys;
  const T* polynomial;  ///< P: coefficients of x^0 .. x^degree
  int degree;
  const T* slope;  ///< what the derivative of a weight is where the weight is P; null: no derivatives wanted
  int slope_degree;
  bool is_causal;  ///< weights of pairs with i < j are 0
  std::ptrdiff_t distance;
  std::ptrdiff_t window;  ///< pairs with |i - j| < window have exp(x); 0: none
  bool is_correction;     ///< near pairs have exp(x) - P(x), all others 0
  T* weights;             ///< [keys][lanes]; may be scores
  T* slopes;              ///< [keys][lanes], derivatives by x; not scores
};

/// Of each row and column, running grows by the row's weight times what is added; before is what it was, and
/// may be the memory of what is added.
template <class T>
struct StateStep {
  T* running;        ///< [rows][pitch]
  const T* added;    ///< [rows][pitch]; null: nothing
  T* before;         ///< [rows][pitch]; null: not wanted
  const T* weights;  ///< [rows]
  std::ptrdiff_t rows, pitch;
};

template <class T>
struct KernelsOf {
  std::ptrdiff_t lanes;
  void (*expand)(const Expansion<T>&);
  void (*multiply_features)(const FeatureProduct<T>&);
  void (*differentiate_features)(const FeatureDerivative<T>&);
  void (*multiply_columns)(const LaneProduct<T>&);
  void (*multiply_rows)(const LaneProduct<T>&);
  void (*multiply_tokens)(const TokenProduct<T>&);
  void (*weigh_pairs)(const PairWeights<T>&);
  /// out[column][row] = in[row][column]; one of both is a multiple of the vectors' width, the other of 4.
  void (*transpose)(const T* in, std::ptrdiff_t in_row, T* out, std::ptrdiff_t out_row, std::ptrdiff_t rows,
                    std::ptrdiff_t columns);
  /// x[row][lanes] becomes (x - shift[row]) factors[lane]; null: 0 and 1.
  void (*adjust)(T* x, std::ptrdiff_t rows, const T* shift, const T* factors);
  /// Column blocks of in[lanes][columns], times factors[lane] unless null: [columns / width][lanes][width]
  /// with the width of a vector; of half a vector that remains, two tokens interleaved, [lanes / 2][width /
  /// 2][2].
  void (*pack_columns)(const T* in, std::ptrdiff_t in_row, std::ptrdiff_t columns, const T* factors, T* out);
  /// to[row][column] = from[row][column], added if `accumulate`; columns in multiples of 4.
  void (*write_rows)(const T* from, std::ptrdiff_t from_row, T* to, std::ptrdiff_t to_row,
                     std::ptrdiff_t rows, std::ptrdiff_t columns, bool accumulate);
  /// sums[column] += sum over rows of rows[row][column].
  void (*sum_rows)(const T* rows, std::ptrdiff_t stride, std::ptrdiff_t count, std::ptrdiff_t columns,
                   double* sums);
  /// rows[row][column] += added[column].
  void (*add_row)(T* rows, std::ptrdiff_t stride, std::ptrdiff_t count, std::ptrdiff_t columns,
                  const T* added);
  void (*step_state)(const StateStep<T>&);
  T (*dot)(const T* a, const T* b, std::ptrdiff_t count);
};

struct Kernels {
  KernelsOf<float> f32;
  KernelsOf<double> f64;

  template <class T>
  const KernelsOf<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float)) return f32;
    else return f64;
  }
};

const Kernels& baseline_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace loipe::attention::almost_linear
