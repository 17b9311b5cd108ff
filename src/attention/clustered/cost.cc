// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/clustered.h"
#include "attention/clustered/kmeans.h"

namespace loipe::attention::clustered {

double relative_cost(const Shape& s, bool is_causal, const Budget& budget) {
  const auto queries = static_cast<double>(s.queries), keys = static_cast<double>(s.keys);
  const auto d = static_cast<double>(s.head_size), dv = static_cast<double>(s.value_size);
  const auto heads = static_cast<double>(s.heads), kv_heads = static_cast<double>(s.kv_heads);
  const double pair = 3 * d + 2 * dv;
  // Query i sees min(i + 1, keys) keys when causal.
  const double half = std::min(queries, keys);
  const double pairs = is_causal ? half * half / 2 + (queries - half) * keys : queries * keys;
  if (pairs * pair * heads == 0) return 1;
  const double clusters = std::clamp(static_cast<double>(budget.clusters), 1.0, keys);
  const auto window = static_cast<double>(budget.window);
  const double block = std::max({96.0, clusters, window});
  const double direct = (is_causal ? block / 2 + window : window > 0 ? block + 2 * window : 0.0);
  // The last cluster taken goes beyond the budget by half its keys.
  const double near = static_cast<double>(budget.exact_keys) + keys / clusters / 2 + direct;
  const double of_queries =
      heads * queries * (std::min(near, pairs / queries) * pair + clusters * (pair + d));
  const double sample = std::min(keys, static_cast<double>(kSampleOfCluster) * clusters);
  const double of_keys = kv_heads * clusters * (d + dv) * (sample * static_cast<double>(kIterations) + keys);
  return (of_queries + of_keys) / (heads * pairs * pair);
}

}  // namespace loipe::attention::clustered
