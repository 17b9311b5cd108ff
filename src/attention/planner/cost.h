// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/planner/planner.h"

namespace loipe::attention::planner {

/// What a FLOP of each kernel costs in units of one of the exact kernels (products of tiles at 60 to 100
/// GFLOP/s and core), measured on cores with AVX2 and AVX-512.
struct CostTable {
  double exponential = 12;     ///< FLOP of one exp of the exact kernels, as they run
  double almost_linear = 1.3;  ///< products with few columns, monomials at the speed of the cache
  double clustered = 1.6;      ///< gathered keys
  double fixed = 2e5;  ///< FLOP that the set-up of any approximate method costs beside what is counted
};
inline constexpr CostTable kCosts;

/// Tokens of a block of the causal scan.
inline constexpr std::int64_t kScanBlock = 128;

/// Monomials of degree at most `degree`; saturates.
inline std::int64_t monomials(std::int64_t size, int degree) {
  return almost_linear::feature_count(size, degree);
}

/// Of queries and keys that the causal mask leaves.
double pairs(const HeadShape& shape);
/// FLOP, in units of exact ones, of forward and backward of one head.
double almost_linear_flops(const HeadShape& shape, std::int64_t rank, std::int64_t features,
                           std::int64_t window);
double clustered_flops(const HeadShape& shape, const HeadPlan& plan);
/// Bytes of workspace.
double exact_bytes(const HeadShape& shape);
double almost_linear_bytes(const HeadShape& shape, std::int64_t features);
double clustered_bytes(const HeadShape& shape, const HeadPlan& plan);

}  // namespace loipe::attention::planner
