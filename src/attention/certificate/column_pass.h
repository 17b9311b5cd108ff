// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/certificate/polynomial_weights.h"

namespace loipe::attention::certificate {

/// Exact rows of dK and dV of the drawn keys, from exact lse and O; or, for a polynomial, rows of their
/// errors, from its denominators and its O. `draws` [kv_heads][columns].
template <class E>
class ColumnPass {
 public:
  ColumnPass(const Extents<E>& extents, const Draw* draws, const Cotangents<E>& cotangents,
             const ExactForward<E>& exact, const Polynomial<E>& polynomial,
             const Rows<const E>& approximate_o, int threads, Arena& arena);
  void run(const Parallel& parallel);

  double* dk(std::int64_t kh, std::int64_t draw) const { return dk_ + at(kh, draw) * e_.head_size(); }
  double* dv(std::int64_t kh, std::int64_t draw) const { return dv_ + at(kh, draw) * e_.value_size(); }
  const Draw& draw(std::int64_t kh, std::int64_t draw) const { return draws_[at(kh, draw)]; }

 private:
  /// The sums of a panel over a chunk of one reader's queries.
  struct Sums {
    E *a, *b, *slopes_a;
  };
  std::int64_t at(std::int64_t kh, std::int64_t draw) const { return kh * e_.columns + draw; }
  Sums sums_of(std::int64_t kh, std::int64_t panel, std::int64_t part) const;
  bool is_projected() const {
    return polynomial_.approximation != nullptr && polynomial_.approximation->rank > 0;
  }
  template <class T>
  void project(std::int64_t kh, const T* in, std::int64_t stride, T* out) const;
  void set_panels(std::int64_t kh);
  void run_chunk(std::int64_t kh, std::int64_t part, const BlockMemory<E>& memory) const;
  void set_rows(std::int64_t head, std::int64_t block, std::int64_t rows, const E* g,
                const BlockMemory<E>& memory) const;
  void take_known(std::int64_t kh, std::int64_t panel, std::int64_t part, const SampleTile<E>& tile,
                  const BlockMemory<E>& memory) const;
  void take_differences(std::int64_t kh, std::int64_t panel, std::int64_t part, std::int64_t block,
                        const SampleTile<E>& tile, const BlockMemory<E>& memory) const;
  void finish(std::int64_t kh, std::int64_t draw);

  const Extents<E>& e_;
  const Draw* draws_;
  Cotangents<E> cotangents_;
  ExactForward<E> exact_;
  Polynomial<E> polynomial_;
  Rows<const E> o_;     ///< exact or approximate
  std::int64_t parts_;  ///< chunks of queries of all readers of a head
  Panel<E>* panels_;    ///< [kv_heads][column_panels]
  E* sums_;             ///< [kv_heads][column_panels][parts][2 a_width + b_width][lanes]
  E* projected_;        ///< [kv_heads][column_panels][a_width][lanes]: samples, projected
  E* factors_;          ///< [kv_heads][column_panels][lanes]: weights of draws
  double* slopes_;      ///< [kv_heads][columns][2][head_size], scratch
  double *dk_, *dv_;
  ThreadMemory threads_;
};

}  // namespace loipe::attention::certificate
