// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/key_clusters.h"

#include <cmath>

namespace loipe::attention::clustered {

namespace {

constexpr std::int64_t kAssigned = 1024;  ///< keys that one task assigns
/// Spreads below so many times the mean one are raised to that: they are rounding errors.
constexpr double kSmallestSpread = 1e-3;

}  // namespace

template <class E>
KeyClusters<Accumulator<E>> KeyClustering<E>::take(const Plan<E>& plan, Arena& arena) {
  const std::int64_t keys = plan.problem.shape.keys, d = plan.centred.head_size, dv = plan.centred.value_size;
  const std::int64_t means = plan.sets * plan.rows;
  KeyClusters<T> c{};
  for (std::int32_t** numbers : {&c.keys, &c.cluster, &c.member, &c.place})
    *numbers = arena.take<std::int32_t>(keys);
  c.allowed_before = arena.take<std::int32_t>(keys + 1);
  c.begin = arena.take<std::int32_t>(plan.rows + 1);
  c.k = arena.take<T>(keys * d), c.v = arena.take<T>(keys * dv);
  c.rank = arena.take<T>(plan.rows);
  c.before = arena.take<std::int32_t>(means), c.until = arena.take<std::int32_t>(means);
  c.k_mean = arena.take<T>(means * d), c.v_mean = arena.take<T>(means * dv), c.count = arena.take<T>(means);
  c.metric = take_metric(plan, arena);
  c.centres = take_centres(plan, arena);
  return c;
}

template <class E>
std::size_t KeyClustering<E>::bytes_of_head(const Plan<E>& plan) {
  Arena arena;
  take(plan, arena);
  return arena.used();
}

template <class E>
KeyClustering<E>::KeyClustering(const Plan<E>& plan, std::int64_t heads_at_once, int threads, Arena& arena)
    : plan_(plan), heads_(arena.take<KeyClusters<T>>(heads_at_once)) {
  for (std::int64_t h = 0; h < heads_at_once; ++h) {
    const KeyClusters<T> head = take(plan, arena);
    if (heads_ != nullptr) std::construct_at(heads_ + h, head);
  }
  Arena centres, assigning;
  take_kmeans_memory(plan, centres);
  take_assign_memory(plan, assigning);
  memory_ = ThreadMemory(arena, std::max(centres.used(), assigning.used()), threads);
}

template <class E>
void KeyClustering<E>::run(const Parallel& parallel, std::int64_t first, std::int64_t heads) {
  for_each(parallel, heads, [&](std::int64_t h, int thread) {
    KeyClusters<T>& c = heads_[h];
    list_allowed(first + h, c);
    Arena memory = memory_.of(thread);
    find_centres(plan_, first + h, {c.keys, static_cast<std::size_t>(c.allowed)}, c.allowed_before, c.metric,
                 c.centres, take_kmeans_memory(plan_, memory));
  });
  const std::int64_t ranges = divide_up(plan_.problem.shape.keys, kAssigned);
  for_each(parallel, heads * ranges, [&](std::int64_t task, int thread) {
    assign_range(first + task / ranges, task % ranges, heads_[task / ranges], memory_.of(thread));
  });
  for_each(parallel, heads, [&](std::int64_t h, int) { sort_members(first + h, heads_[h]); });
  for_each(parallel, heads * plan_.rows,
           [&](std::int64_t task, int) { average(task % plan_.rows, heads_[task / plan_.rows]); });
}

template <class E>
void KeyClustering<E>::list_allowed(std::int64_t key_head, KeyClusters<T>& c) const {
  const std::uint8_t* const is_allowed = key_mask_at(plan_.problem.mask, key_head, 0);
  std::int32_t allowed = 0;
  for (std::int64_t j = 0; j < plan_.problem.shape.keys; ++j) {
    c.allowed_before[j] = allowed;
    if (is_allowed == nullptr || is_allowed[j] != 0) c.keys[allowed++] = static_cast<std::int32_t>(j);
  }
  c.allowed_before[plan_.problem.shape.keys] = allowed;
  c.allowed = allowed;
}

template <class E>
void KeyClustering<E>::assign_range(std::int64_t key_head, std::int64_t range, const KeyClusters<T>& c,
                                    Arena memory) const {
  const std::int64_t begin = std::min(range * kAssigned, c.allowed);
  const std::int64_t count = std::min(kAssigned, c.allowed - begin);
  if (c.allowed <= plan_.clusters) {  // each is its own centre
    for (std::int64_t n = begin; n < begin + count; ++n) c.cluster[n] = static_cast<std::int32_t>(n);
    return;
  }
  assign_keys(plan_, key_head, {c.keys + begin, static_cast<std::size_t>(count)}, c.centres,
              c.cluster + begin, take_assign_memory(plan_, memory));
}

/// Members by counting, and how many of each cluster lie before the direct keys of each set and their end.
template <class E>
void KeyClustering<E>::sort_members(std::int64_t key_head, KeyClusters<T>& c) const {
  const Shape& s = plan_.problem.shape;
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size, rows = plan_.rows;
  std::fill(c.begin, c.begin + rows + 1, 0);
  for (std::int64_t n = 0; n < c.allowed; ++n) ++c.begin[c.cluster[n] + 1];
  for (std::int64_t cluster = 0; cluster < rows; ++cluster) c.begin[cluster + 1] += c.begin[cluster];
  rank_clusters(c);
  // c.begin[cluster] is where the next member goes, until it has become the begin of the next cluster.
  std::int64_t set_before = 0, set_until = 0;
  const auto note = [&](std::int64_t& set, std::int64_t key, auto&& border, std::int32_t* counts) {
    for (; set < plan_.sets && border(set) <= key; ++set) std::copy_n(c.begin, rows, counts + set * rows);
  };
  const auto first = [&](std::int64_t set) { return plan_.direct(set).begin; };
  const auto last = [&](std::int64_t set) { return plan_.direct(set).end; };
  for (std::int64_t n = 0; n < c.allowed; ++n) {
    const std::int64_t key = c.keys[n];
    note(set_before, key, first, c.before), note(set_until, key, last, c.until);
    const std::int32_t place = c.begin[c.cluster[n]]++;
    c.member[place] = static_cast<std::int32_t>(n), c.place[n] = place;
    load_rows(plan_.problem.k, RowRange<T>{key_head, key, 1, 1, plan_.centred.k_mean_of(key_head)},
              s.head_size, c.k + place * d, d, 1);
    load_rows(plan_.problem.v, RowRange<T>{key_head, key, 1, 1, plan_.centred.v_mean_of(key_head)},
              s.value_size, c.v + place * dv, dv, 1);
  }
  note(set_before, s.keys, first, c.before), note(set_until, s.keys, last, c.until);
  double square = 0;
  for (std::int64_t i = 0; i < c.allowed * dv; ++i)
    square += static_cast<double>(c.v[i]) * static_cast<double>(c.v[i]);
  c.value_variance = c.allowed == 0 ? 0 : square / static_cast<double>(c.allowed * s.value_size);
  for (std::int64_t cluster = rows; cluster > 0; --cluster) c.begin[cluster] = c.begin[cluster - 1];
  c.begin[0] = 0;
  for (std::int64_t set = 0; set < plan_.sets; ++set)
    for (std::int64_t cluster = 0; cluster < rows; ++cluster) {
      c.before[set * rows + cluster] -= c.begin[cluster];
      c.until[set * rows + cluster] -= c.begin[cluster];
    }
}

template <class E>
void KeyClustering<E>::rank_clusters(const KeyClusters<T>& c) const {
  double mean = 0;
  for (std::int64_t cluster = 0; cluster < c.centres.count; ++cluster)
    mean += static_cast<double>(c.centres.spread[cluster]) / static_cast<double>(c.centres.count);
  const double least = mean * kSmallestSpread * kSmallestSpread + 1e-30;
  for (std::int64_t cluster = 0; cluster < plan_.rows; ++cluster)
    c.rank[cluster] =
        static_cast<T>(0.5 * std::log2(std::max(static_cast<double>(c.centres.spread[cluster]), least)));
}

/// Means of the members of one cluster outside the direct keys of each set: sums from the front, and unless
/// causal from the back.
template <class E>
void KeyClustering<E>::average(std::int64_t cluster, const KeyClusters<T>& c) const {
  const std::int64_t first = c.begin[cluster], members = c.begin[cluster + 1] - first;
  const auto of = [&](const T* numbers, std::int64_t width, T* means) {
    const auto mean = [&](std::int64_t set) { return means + (set * plan_.rows + cluster) * width; };
    const auto add = [&](std::int64_t member, T* sum) {
      for (std::int64_t i = 0; i < width; ++i) sum[i] += numbers[(first + member) * width + i];
    };
    for (std::int64_t set = 0, member = 0; set < plan_.sets; ++set) {
      if (set == 0) std::fill_n(mean(set), width, T{0});
      else std::copy_n(mean(set - 1), width, mean(set));
      for (; member < c.before[set * plan_.rows + cluster]; ++member) add(member, mean(set));
    }
    if (plan_.problem.mask.is_causal || !plan_.has_direct()) return;
    for (std::int64_t set = 0; set < plan_.sets; ++set)
      for (std::int64_t member = c.until[set * plan_.rows + cluster]; member < members; ++member)
        add(member, mean(set));
  };
  of(c.k, plan_.centred.head_size, c.k_mean);
  of(c.v, plan_.centred.value_size, c.v_mean);
  for (std::int64_t set = 0; set < plan_.sets; ++set) {
    const std::int64_t at = set * plan_.rows + cluster;
    const bool sees_rest = !plan_.problem.mask.is_causal && plan_.has_direct();
    const std::int64_t count = c.before[at] + (sees_rest ? members - c.until[at] : 0);
    c.count[at] = static_cast<T>(count);
    if (count == 0) continue;
    const T factor = 1 / static_cast<T>(count);
    for (std::int64_t i = 0; i < plan_.centred.head_size; ++i)
      c.k_mean[at * plan_.centred.head_size + i] *= factor;
    for (std::int64_t i = 0; i < plan_.centred.value_size; ++i)
      c.v_mean[at * plan_.centred.value_size + i] *= factor;
  }
}

template class KeyClustering<float>;
template class KeyClustering<double>;

}  // namespace loipe::attention::clustered
