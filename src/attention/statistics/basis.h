// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attention/exact/arena.h"

namespace loipe::attention::statistics {

/// Above this head size no basis is looked for: rank = head_size, basis = the axes.
inline constexpr std::int64_t kLargestSize = 256;

struct BasisMemory {
  double *matrix, *vectors, *q, *k, *product;  ///< [size][size] each
  BasisMemory(std::int64_t size, Arena& arena);
};

struct Rank {
  std::int64_t rank;
  double lost_energy;  ///< part of tr(q k)
};

/// Columns are kept until the rest has at most the part 1 - energy of the logits' energy, and of that of the
/// queries and of the keys.
///
/// basis[size][size], columns by energy, for second moments q and k [size][size] of queries and centred keys.
/// The mean square of what r columns B leave of the logits is tr(R q R k), R = 1 - B B^T, if queries and keys
/// are independent. The least of it over all B has no closed form unless q and k commute; then B are joint
/// eigenvectors with the largest products of eigenvalues, which (q k + k q) / 2 has. If q or k alone has low
/// rank, eigenvectors of that one leave nothing. So these three bases are tried, and the best is taken.
Rank choose_basis(std::int64_t size, const double* q, const double* k, double energy,
                  const BasisMemory& memory, double* basis);

}  // namespace loipe::attention::statistics
