// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/query_chunk.h"

#include <cmath>
#include <limits>

namespace loipe::attention::clustered {

template <class E>
PackedCotangent<Accumulator<E>> pack_cotangent(const Plan<E>& plan, const Saved<E>& saved,
                                               const Cotangents<E>& cotangents, std::int64_t head,
                                               std::int64_t query, double value_variance, Accumulator<E>* g) {
  using T = Accumulator<E>;
  const std::int64_t dv = plan.centred.value_size, value_size = plan.problem.shape.value_size;
  const double lse = static_cast<double>(get(saved.lse, head, query, 0));
  if (!std::isfinite(lse)) {  // no keys: its cotangents may be anything
    std::fill_n(g, dv, T{0});
    return {static_cast<T>(10 * kNoKeys), T{0}, -std::numeric_limits<T>::infinity()};
  }
  load_rows(cotangents.o, RowRange<T>{head, query, 1}, value_size, g, dv, 1);
  const T* const shift = plan.centred.v_mean_of(plan.problem.shape.key_head(head));
  const double l = lse_cotangent(cotangents, head, query);
  double mean = -l, square = 0;
  for (std::int64_t c = 0; c < value_size; ++c) {
    square += static_cast<double>(g[c]) * static_cast<double>(g[c]);
    mean += static_cast<double>(g[c]) *
            (static_cast<double>(get(saved.o, head, query, c)) - static_cast<double>(shift[c]));
  }
  const double centred = lse - plan.centred.centred_logit(plan.problem.q, head, query);
  return {static_cast<T>(centred * kLog2E), static_cast<T>(mean),
          static_cast<T>(0.5 * std::log2(square * value_variance + l * l))};
}

template <class E>
void QueryPacking<E>::pack_cotangents(const BlockOfReader& b, const Saved<E>& saved,
                                      const Cotangents<E>& cotangents, double value_variance,
                                      const QueryChunk<T>& chunk) const {
  const std::int64_t dv = plan_.centred.value_size;
  for (std::int64_t row = 0; row < plan_.slots; ++row) {
    T* const g = chunk.g + (b.slot + row) * dv;
    PackedCotangent<T> packed{static_cast<T>(10 * kNoKeys), T{0}, -std::numeric_limits<T>::infinity()};
    if (row < b.queries.count())
      packed = pack_cotangent(plan_, saved, cotangents, b.head, b.queries.begin + row, value_variance, g);
    else std::fill_n(g, dv, T{0});
    chunk.lse[b.slot + row] = packed.lse, chunk.mean[b.slot + row] = packed.mean;
    chunk.log_size[b.slot + row] = packed.log_size, chunk.factor[b.slot + row] = 1;
  }
}

template <class E>
PackedMeans<Accumulator<E>> take_means(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  PackedMeans<T> means{};
  means.strip = take_strip(plan, plan.rows, arena);
  for (T** numbers : {&means.rank, &means.count, &means.log_count}) *numbers = arena.take<T>(plan.rows);
  for (T** numbers : {&means.scores, &means.additive}) *numbers = arena.take<T>(plan.rows * plan.lanes);
  return means;
}

template <class E>
void pack_means(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t set,
                const PackedMeans<Accumulator<E>>& means) {
  using T = Accumulator<E>;
  const std::int64_t rows = plan.rows;
  pack_strip(plan, keys.k_mean + set * rows * plan.centred.head_size,
             keys.v_mean + set * rows * plan.centred.value_size, rows, means.strip,
             [](std::int64_t row) { return row; });
  for (std::int64_t c = 0; c < rows; ++c) {
    const T count = keys.count[set * rows + c];
    means.count[c] = count;
    means.log_count[c] = std::log2(count);
    means.rank[c] = count > 0 ? keys.rank[c] : -std::numeric_limits<T>::infinity();
  }
}

template <class E>
void select(const Plan<E>& plan, const LaneTile<Accumulator<E>>& lanes, std::int64_t exact_keys,
            const Accumulator<E>* thresholds, const PackedMeans<Accumulator<E>>& means,
            std::uint64_t* taken) {
  using T = Accumulator<E>;
  SelectTile<T> t{};
  t.q = lanes.q, t.k = means.strip.k, t.rank = means.rank, t.count = means.count;
  t.wanted = static_cast<T>(exact_keys), t.threshold = thresholds;
  t.log_count = means.log_count;
  t.scores = means.scores, t.additive = means.additive, t.taken = taken;
  t.head_size = plan.centred.head_size, t.rows = plan.rows;
  plan.kernels.select(t);
  const std::uint64_t used = lanes.count < 64 ? (std::uint64_t{1} << lanes.count) - 1 : ~std::uint64_t{0};
  for (std::int64_t c = 0; c < plan.rows; ++c) taken[c] &= used;
}

#define LOIPE_INSTANTIATE(E)                                                                                 \
  template PackedCotangent<Accumulator<E>> pack_cotangent(const Plan<E>&, const Saved<E>&,                   \
                                                          const Cotangents<E>&, std::int64_t, std::int64_t,  \
                                                          double, Accumulator<E>*);                          \
  template class QueryPacking<E>;                                                                            \
  template PackedMeans<Accumulator<E>> take_means(const Plan<E>&, Arena&);                                   \
  template void pack_means(const Plan<E>&, const KeyClusters<Accumulator<E>>&, std::int64_t,                 \
                           const PackedMeans<Accumulator<E>>&);                                              \
  template void select(const Plan<E>&, const LaneTile<Accumulator<E>>&, std::int64_t, const Accumulator<E>*, \
                       const PackedMeans<Accumulator<E>>&, std::uint64_t*);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
