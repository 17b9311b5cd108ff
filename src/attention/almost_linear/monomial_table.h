// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/kernels/linear_kernels.h"
#include "attention/exact/arena.h"

namespace loipe::attention::almost_linear {

/// The monomials of degree at most `degree` in `size` variables with their multinomial coefficients: for
/// |beta| = p, <q, k>^p = sum over beta of p! / beta! q^beta k^beta.
template <class T>
class MonomialTable {
 public:
  MonomialTable(std::int64_t size, int degree, Arena& arena);
  /// Before anything else; the constructor only takes memory.
  void fill();

  const Monomials& monomials() const { return monomials_; }
  const T* multiplicities() const { return multiplicities_; }  ///< [count]: p! / beta!
  std::int64_t count() const { return count_; }
  std::int64_t low() const { return low_; }  ///< those of degree below the highest, at least 1

 private:
  Monomials monomials_;
  std::int64_t count_, low_;
  std::ptrdiff_t* starts_;
  std::int32_t *coordinates_, *parents_;  ///< [count]
  T* multiplicities_;
  std::uint8_t* powers_;  ///< [count]: of the first variable
};

}  // namespace loipe::attention::almost_linear
