// SPDX-License-Identifier: Apache-2.0
#include "attention/planner/cost.h"

#include <algorithm>

namespace loipe::attention::planner {

namespace {

/// FLOP of one pair of the exact method: scores and O forward, scores, dP, dQ, dK and dV backward, each a
/// multiplication and an addition for each column, and an exponential in each direction.
double forward_pair(const HeadShape& s) {
  return 2 * static_cast<double>(s.head_size + s.value_size) + kCosts.exponential;
}
double backward_pair(const HeadShape& s) {
  return static_cast<double>(6 * s.head_size + 4 * s.value_size) + kCosts.exponential;
}

}  // namespace

double pairs(const HeadShape& s) {
  const double queries = static_cast<double>(s.queries), keys = static_cast<double>(s.keys);
  const double readers = static_cast<double>(s.readers);
  if (!s.is_causal) return readers * queries * keys;
  // Query i sees min(i + 1, keys) of them.
  const double triangle = std::min(queries, keys);
  return readers * (triangle * (triangle + 1) / 2 + (queries - triangle) * keys);
}

double exact_flops(const HeadShape& s) { return pairs(s) * (forward_pair(s) + backward_pair(s)); }

// Six products of features with value_size + 1 columns, three by queries and three by keys, and 13 FLOP for
// each feature (alt-grad's count); a causal scan has exact pairs within its blocks, a window exact ones
// besides.
double almost_linear_flops(const HeadShape& s, std::int64_t rank, std::int64_t features,
                           std::int64_t window) {
  const double tokens = static_cast<double>(s.readers * s.queries + s.keys) / 2;
  const double columns = static_cast<double>(s.value_size + 1), size = static_cast<double>(rank);
  double near = static_cast<double>(s.readers) * static_cast<double>(s.queries) *
                static_cast<double>(s.is_causal ? kScanBlock / 2 + window : 2 * window);
  near = std::min(near, pairs(s));
  double flops = tokens * static_cast<double>(features) * (12 * columns + 13);
  flops += near * (8 * size + 6 * columns + kCosts.exponential);
  if (rank < s.head_size) flops += tokens * 8 * size * static_cast<double>(s.head_size);
  return flops * kCosts.almost_linear + kCosts.fixed;
}

double clustered_flops(const HeadShape& s, const HeadPlan& plan) {
  const double queries = static_cast<double>(s.readers * s.queries);
  const double seen = std::min(static_cast<double>(plan.clusters + plan.exact_keys + 2 * plan.window),
                               pairs(s) / std::max(queries, 1.0));
  // A few rounds of assigning keys to centres.
  const double clustering = 4 * 2 * static_cast<double>(s.keys) * static_cast<double>(plan.clusters) *
                            static_cast<double>(s.head_size);
  const double approximate = queries * seen * (backward_pair(s) + 2 * static_cast<double>(s.head_size));
  double flops = (approximate + clustering) * kCosts.clustered + kCosts.fixed;
  if (plan.pairing == Pairing::exact_forward) flops += pairs(s) * forward_pair(s);
  else flops += queries * seen * forward_pair(s) * kCosts.clustered;
  return flops;
}

double exact_bytes(const HeadShape& s) {
  const double row = static_cast<double>(s.element_bytes * (s.head_size + s.value_size));
  return std::min(20.0 * (1 << 20), row * static_cast<double>(s.queries + s.keys) * 3);
}

// Each thread has sums over features, theirs and those of cotangents, and the features of a block; results
// and normalisers are linear in the tokens.
double almost_linear_bytes(const HeadShape& s, std::int64_t features) {
  const double per_feature = static_cast<double>(4 * (s.value_size + 1) + 3 * kScanBlock);
  const double tokens = static_cast<double>(s.readers * s.queries + s.keys);
  return static_cast<double>(s.element_bytes) *
         (static_cast<double>(features) * per_feature * static_cast<double>(s.threads) +
          tokens * static_cast<double>(s.head_size + s.value_size + 2));
}

double clustered_bytes(const HeadShape& s, const HeadPlan& plan) {
  const double row = static_cast<double>(s.element_bytes * (s.head_size + s.value_size));
  return row * static_cast<double>(2 * s.keys + 4 * plan.clusters) + 16.0 * static_cast<double>(s.keys);
}

}  // namespace loipe::attention::planner
