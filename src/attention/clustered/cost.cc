// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "attention/clustered/clustered.h"

namespace loipe::attention::clustered {

namespace {

// In units of one pair of query and key of the exact derivative, measured at n = 4,096 and head size 32
// (AVX-512):
constexpr double kTakenPair = 1.3;     ///< a pair of a gathered tile
constexpr double kGatheredQuery = 20;  ///< a query gathered for one cluster, and its dQ
constexpr double kMean = 3;            ///< a mean against a query: choosing, derivative, k-means
constexpr double kQuery = 250;         ///< packing a query and its key, sums, results

}  // namespace

double relative_cost(const Shape& s, bool is_causal, const Budget& budget) {
  const auto queries = static_cast<double>(s.queries), keys = static_cast<double>(s.keys);
  // Query i sees min(i + 1, keys) keys when causal.
  const double both = std::min(queries, keys);
  const double pairs = is_causal ? both * both / 2 + (queries - both) * keys : queries * keys;
  if (pairs == 0) return 1;
  const double clusters = std::clamp(static_cast<double>(budget.clusters), 1.0, keys);
  const auto window = static_cast<double>(budget.window);
  const double block = std::max({96.0, clusters, window});
  const double direct = is_causal ? block / 2 + window : window > 0 ? block + 2 * window : 0.0;
  // The last cluster taken goes beyond the budget by half its keys.
  const double members = keys / clusters, seen = pairs / queries;
  const double taken = std::min(static_cast<double>(budget.exact_keys) + members / 2, seen);
  const double sampled = std::min(static_cast<double>(budget.sampled) / queries, 1.0);
  const double of_query = kTakenPair * std::min(taken + direct, seen) + kGatheredQuery * taken / members +
                          kMean * clusters + kQuery +
                          sampled * (kTakenPair * seen + kGatheredQuery * clusters);
  return of_query / seen;
}

}  // namespace loipe::attention::clustered
