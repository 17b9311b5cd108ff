// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/certificate/polynomial_weights.h"
#include "attention/certificate/row_pass.h"

namespace loipe::attention::certificate {

/// What pairs of drawn queries say about |dK error|^2 and |dV error|^2, for polynomial attention.
///
/// The error of dV is the sum over queries of rank one matrices u_i g_i^T, u the difference of weights, that
/// of dK of t_i (scale q_i)^T. With Y the sum over draws of their weight times that, E |Y|^2 is the square of
/// the error and the variance of Y, which within a part is that of half the difference of two draws, X_1 and
/// X_2; so |Y|^2 - sum over parts of |w_1 X_1 - w_2 X_2|^2 is unbiased for the square of the error.
template <class E>
class PairPass {
 public:
  PairPass(const Extents<E>& extents, const RowPass<E>& rows, const Cotangents<E>& cotangents,
           const Rows<const E>& o, const Polynomial<E>& polynomial, int threads, Arena& arena);
  void run(const Parallel& parallel);

  struct Square {
    double value, deviation;
  };
  Square dk() const { return square(0); }
  Square dv() const { return square(1); }

 private:
  /// Numbers of lanes of a panel beside its samples.
  struct Lanes {
    E *shift, *mean, *reciprocal, *approximate_mean;  ///< [lanes]
    E *a, *b;                                         ///< [lanes][a_width], [lanes][b_width], weighted
  };
  /// Of a chunk of keys: squares of Y, and of all panels [4][lanes] sums over rows.
  struct Partial {
    double* squares;  ///< [2]
    double* pairs;    ///< [readers][row_panels][4][lanes]: |t|^2, t t', |u|^2, u u'
  };
  static Lanes take_lanes(const Extents<E>& e, Arena& arena);
  Partial partial_of(std::int64_t kh, std::int64_t chunk) const;
  std::int64_t pairs_size() const { return e_.problem.shape.readers() * e_.row_panels * 4 * e_.lanes; }
  void set_lanes(std::int64_t head);
  void run_chunk(std::int64_t kh, std::int64_t chunk, const BlockMemory<E>& memory) const;
  void take_block(std::int64_t head, std::int64_t panel, const SampleTile<E>& tile, std::int64_t block,
                  const PolynomialWeights<E>& weights, double* pairs, const BlockMemory<E>& memory) const;
  Square square(std::int64_t which) const;

  const Extents<E>& e_;
  const RowPass<E>& rows_;
  Cotangents<E> cotangents_;
  Rows<const E> o_;
  Polynomial<E> polynomial_;
  Lanes* lanes_;  ///< [heads][row_panels]
  double* partials_;
  ThreadMemory threads_;
};

}  // namespace loipe::attention::certificate
