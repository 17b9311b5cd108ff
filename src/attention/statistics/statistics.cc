// SPDX-License-Identifier: Apache-2.0
#include "attention/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/statistics/basis.h"
#include "attention/statistics/block_reader.h"

namespace loipe::attention::statistics {

namespace {

constexpr std::int64_t kSampledQueries = 32, kSampledKeys = 256;

/// Keeps NaN.
void take_larger(double& largest, double x) {
  if (!(x <= largest) && !std::isnan(largest)) largest = x;
}
double largest_of(const double* values, std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) take_larger(largest, values[i]);
  return largest;
}

/// What the chunks of one kind (queries of all readers, keys or values) of every head leave.
struct Partials {
  Chunks chunks;
  std::int64_t width;
  double* sums;     ///< [kv_heads][chunks][width]
  double* moments;  ///< [kv_heads][chunks][width][width]
  double* norms;    ///< [kv_heads][chunks], largest squared norm
  double* rests;    ///< [kv_heads][chunks], the same outside of the basis

  Partials(std::int64_t rows, std::int64_t w, std::int64_t heads, bool has_moments, Arena& arena)
      : chunks(rows), width(w) {
    const std::int64_t count = heads * chunks.count;
    sums = arena.take<double>(count * width);
    moments = arena.take<double>(has_moments ? count * width * width : 0);
    norms = arena.take<double>(count), rests = arena.take<double>(count);
  }
  std::int64_t at(std::int64_t head, std::int64_t chunk) const { return head * chunks.count + chunk; }
  double largest_norm(std::int64_t head) const { return largest_of(norms + at(head, 0), chunks.count); }
  double largest_rest(std::int64_t head) const { return largest_of(rests + at(head, 0), chunks.count); }

  /// The mean of a column or of a product of two.
  double mean(const double* from, std::int64_t head, std::int64_t size, std::int64_t i, double rows) const {
    double sum = 0;
    for (std::int64_t c = 0; c < chunks.count; ++c) sum += from[at(head, c) * size + i];
    return sum / rows;
  }
};

template <class E>
struct Pass {
  const Problem<E>& p;
  const MomentKernels<E>& kernels;
  std::int64_t width, value_width;
  Partials queries, keys, values;
  E *key_mean, *value_mean;  ///< [kv_heads][width], [kv_heads][value_width]
  E* outside;             ///< [kv_heads][width][width]: [width][rest] of each head, the basis beyond its rank
  double *q, *k, *basis;  ///< [kv_heads][head_size][head_size]
  ThreadMemory threads;

  Pass(const Problem<E>& problem, int thread_count, Arena& arena)
      : p(problem),
        kernels(moment_kernels_of_this_cpu<E>()),
        width(round_up(p.shape.head_size, kPad)),
        value_width(round_up(p.shape.value_size, kPad)),
        queries(p.shape.queries, width, p.shape.kv_heads, true, arena),
        keys(p.shape.keys, width, p.shape.kv_heads, true, arena),
        values(p.shape.keys, value_width, p.shape.kv_heads, false, arena) {
    const std::int64_t heads = p.shape.kv_heads, square = heads * p.shape.head_size * p.shape.head_size;
    key_mean = arena.take<E>(heads * width), value_mean = arena.take<E>(heads * value_width);
    outside = arena.take<E>(heads * width * width);
    q = arena.take<double>(square), k = arena.take<double>(square), basis = arena.take<double>(square);
    Arena one;
    take_block(one), take_sample(one), BasisMemory(p.shape.head_size, one);
    threads = ThreadMemory(arena, one.used(), thread_count);
  }

  E* take_block(Arena& arena) const { return arena.take<E>(kBlockRows * std::max(width, value_width)); }
  struct Sample {
    E *keys, *logits;  ///< [head_size][kSampledKeys], [kSampledKeys]
  };
  Sample take_sample(Arena& arena) const {
    return {arena.take<E>(width * kSampledKeys), arena.take<E>(kSampledKeys)};
  }

  std::int64_t head_size() const { return p.shape.head_size; }
  const std::uint8_t* is_allowed(std::int64_t kh) const { return key_mask_at(p.mask, kh, 0); }
  BlockReader<E> queries_by(E* block) const { return {p.q, head_size(), width, nullptr, nullptr, block}; }
  BlockReader<E> keys_by(std::int64_t kh, bool is_centred, E* block) const {
    return {p.k, head_size(), width, is_centred ? key_mean + kh * width : nullptr, is_allowed(kh), block};
  }
  BlockReader<E> values_by(std::int64_t kh, bool is_centred, E* block) const {
    return {p.v,
            p.shape.value_size,
            value_width,
            is_centred ? value_mean + kh * value_width : nullptr,
            is_allowed(kh),
            block};
  }

  /// Runs body(kh, chunk, block) for all chunks of some partials.
  template <class Body>
  void for_each_chunk(const Partials& partials, const Parallel& parallel, Body&& body) const {
    const std::int64_t chunks = partials.chunks.count;
    for_each(parallel, p.shape.kv_heads * chunks, [&](std::int64_t task, int thread) {
      Arena own = threads.of(thread);
      body(task / chunks, task % chunks, take_block(own));
    });
  }
  /// Runs body(rows) for the blocks of a chunk of all readers of a head of keys.
  template <class Body>
  void for_each_query_block(std::int64_t kh, std::int64_t chunk, E* block, Body&& body) const {
    const std::int64_t readers = p.shape.readers();
    for (std::int64_t h = kh * readers; h < (kh + 1) * readers; ++h)
      queries_by(block).for_each(queries.chunks.of(h, chunk), body);
  }

  void compute_means(const Parallel& parallel) const {
    const auto sum = [&](const Partials& to, bool is_keys) {
      for_each_chunk(to, parallel, [&](std::int64_t kh, std::int64_t c, E* block) {
        double* const sums = to.sums + to.at(kh, c) * to.width;
        std::fill(sums, sums + to.width, 0.0);
        const auto reader = is_keys ? keys_by(kh, false, block) : values_by(kh, false, block);
        reader.for_each(to.chunks.of(kh, c), [&](const E* rows) { kernels.add_rows(rows, to.width, sums); });
      });
    };
    sum(keys, true), sum(values, false);
    for (std::int64_t kh = 0; kh < p.shape.kv_heads; ++kh) {
      const double rows = static_cast<double>(std::max<std::int64_t>(allowed_keys(kh), 1));
      for (std::int64_t c = 0; c < width; ++c)
        key_mean[kh * width + c] = static_cast<E>(keys.mean(keys.sums, kh, width, c, rows));
      for (std::int64_t c = 0; c < value_width; ++c)
        value_mean[kh * value_width + c] = static_cast<E>(values.mean(values.sums, kh, value_width, c, rows));
    }
  }
  std::int64_t allowed_keys(std::int64_t kh) const {
    const std::uint8_t* const allowed = is_allowed(kh);
    return allowed == nullptr ? p.shape.keys : p.shape.keys - std::count(allowed, allowed + p.shape.keys, 0);
  }

  void compute_moments(const Parallel& parallel) const {
    const auto clear = [](const Partials& to, std::int64_t at) {
      std::fill_n(to.moments + at * to.width * to.width, to.width * to.width, 0.0);
      to.norms[at] = 0;
      return [&to, at, kernels = moment_kernels_of_this_cpu<E>()](const E* rows) {
        kernels.add_moments(rows, to.width, to.moments + at * to.width * to.width);
        take_larger(to.norms[at], static_cast<double>(kernels.largest_norm(rows, to.width)));
      };
    };
    for_each_chunk(queries, parallel, [&](std::int64_t kh, std::int64_t c, E* block) {
      for_each_query_block(kh, c, block, clear(queries, queries.at(kh, c)));
    });
    for_each_chunk(keys, parallel, [&](std::int64_t kh, std::int64_t c, E* block) {
      keys_by(kh, true, block).for_each(keys.chunks.of(kh, c), clear(keys, keys.at(kh, c)));
      double& norm = values.norms[values.at(kh, c)] = 0;
      values_by(kh, true, block).for_each(values.chunks.of(kh, c), [&](const E* rows) {
        take_larger(norm, static_cast<double>(kernels.largest_norm(rows, value_width)));
      });
    });
  }

  /// Norms outside of the first rank columns of each head's basis.
  void compute_rests(std::span<const HeadStatistics> heads, const Parallel& parallel) const {
    const auto rest = [&](std::int64_t kh) { return head_size() - heads[static_cast<std::size_t>(kh)].rank; };
    for (std::int64_t kh = 0; kh < p.shape.kv_heads; ++kh) {
      E* const to = outside + kh * width * width;
      const std::int64_t d = head_size(), count = rest(kh), padded = round_up(count, kPad);
      std::fill_n(to, width * padded, E{0});
      for (std::int64_t row = 0; row < d; ++row)
        for (std::int64_t c = 0; c < count; ++c)
          to[row * padded + c] = static_cast<E>(basis[(kh * d + row) * d + d - count + c]);
    }
    const auto taken = [&](const Partials& to, std::int64_t kh, std::int64_t c) {
      double& largest = to.rests[to.at(kh, c)] = 0;
      return [&largest, this, kh, count = round_up(rest(kh), kPad)](const E* rows) {
        const E* const columns = outside + kh * width * width;
        take_larger(largest,
                    static_cast<double>(kernels.largest_projected_norm(rows, width, columns, count)));
      };
    };
    for_each_chunk(queries, parallel, [&](std::int64_t kh, std::int64_t c, E* block) {
      if (rest(kh) > 0) for_each_query_block(kh, c, block, taken(queries, kh, c));
    });
    for_each_chunk(keys, parallel, [&](std::int64_t kh, std::int64_t c, E* block) {
      if (rest(kh) > 0) keys_by(kh, true, block).for_each(keys.chunks.of(kh, c), taken(keys, kh, c));
    });
  }

  double largest_logit(std::int64_t kh, const Sample& sample) const {
    const std::int64_t d = head_size(), n = p.shape.keys, readers = p.shape.readers();
    const std::uint8_t* const allowed = is_allowed(kh);
    std::fill(sample.keys, sample.keys + d * kSampledKeys, E{0});
    const std::int64_t taken = std::min(n, kSampledKeys);
    for (std::int64_t s = 0; s < taken; ++s) {
      const std::int64_t j = s * n / taken;
      if (allowed != nullptr && allowed[j] == 0) continue;
      for (std::int64_t c = 0; c < d; ++c)
        sample.keys[c * kSampledKeys + s] = get(p.k, kh, j, c) - key_mean[kh * width + c];
    }
    double largest = 0;
    const std::int64_t rows = std::min(p.shape.queries, kSampledQueries);
    for (std::int64_t h = kh * readers; h < (kh + 1) * readers; ++h)
      for (std::int64_t s = 0; s < rows; ++s) {
        std::fill(sample.logits, sample.logits + kSampledKeys, E{0});
        for (std::int64_t c = 0; c < d; ++c) {
          const E x = get(p.q, h, s * p.shape.queries / rows, c);
          for (std::int64_t l = 0; l < kSampledKeys; ++l)
            sample.logits[l] += x * sample.keys[c * kSampledKeys + l];
        }
        for (std::int64_t l = 0; l < kSampledKeys; ++l)
          take_larger(largest, std::abs(static_cast<double>(sample.logits[l])));
      }
    return largest * std::abs(p.scale);
  }

  /// Means over rows of products of columns, both halves.
  void reduce(const Partials& from, std::int64_t kh, double rows, double* out) const {
    const std::int64_t d = head_size();
    for (std::int64_t a = 0; a < d; ++a)
      for (std::int64_t b = a; b < d; ++b)
        out[a * d + b] = out[b * d + a] = from.mean(from.moments, kh, width * width, a * width + b, rows);
  }

  void finish(std::int64_t kh, const Options& options, Arena arena, HeadStatistics& head) const {
    const std::int64_t d = head_size();
    head = {};
    head.scale = p.scale;
    head.keys = allowed_keys(kh);
    double *const q_kh = q + kh * d * d, *const k_kh = k + kh * d * d;
    reduce(queries, kh, static_cast<double>(std::max<std::int64_t>(p.shape.queries * p.shape.readers(), 1)),
           q_kh);
    reduce(keys, kh, static_cast<double>(std::max<std::int64_t>(head.keys, 1)), k_kh);
    double energy = 0;
    for (std::int64_t i = 0; i < d * d; ++i) energy += q_kh[i] * k_kh[i];
    head.logit_spread = std::abs(p.scale) * std::sqrt(energy < 0 ? 0 : energy);
    head.query_norm = norm(queries, kh);
    head.key_norm = norm(keys, kh) + centre_rounding(key_mean + kh * width, width);
    head.value_norm = norm(values, kh) + centre_rounding(value_mean + kh * value_width, value_width);
    head.logit_bound = std::abs(p.scale) * head.query_norm * head.key_norm;
    Arena sample_memory = arena;
    head.largest_logit = largest_logit(kh, take_sample(sample_memory));
    const Rank rank = choose_basis(d, q_kh, k_kh, options.energy, BasisMemory(d, arena), basis + kh * d * d);
    head.rank = rank.rank, head.lost_energy = rank.lost_energy;
  }

  static constexpr double kEpsilon = std::numeric_limits<E>::epsilon();
  /// Norms are sums in E, which the bound counts; so it does that another mean, computed in another order,
  /// may be the centre of what is bounded.
  static double norm(const Partials& from, std::int64_t kh) {
    const double terms = static_cast<double>(from.width + 8);
    return std::sqrt(from.largest_norm(kh)) * (1 + terms * kEpsilon);
  }
  static double centre_rounding(const E* mean, std::int64_t size) {
    double sum = 0;
    for (std::int64_t c = 0; c < size; ++c)
      sum += static_cast<double>(mean[c]) * static_cast<double>(mean[c]);
    return kBlockRows * kEpsilon * std::sqrt(sum);
  }
  void finish_rest(std::int64_t kh, HeadStatistics& head) const {
    if (head.rank == head_size()) return;
    // Coordinates are off by the rounding of a sum of head_size products, in proportion to the whole norm.
    const double rounding = static_cast<double>((width + 8) * width) * kEpsilon;
    head.query_rest = std::sqrt(queries.largest_rest(kh)) + rounding * head.query_norm;
    head.key_rest = std::sqrt(keys.largest_rest(kh)) + rounding * head.key_norm;
    head.projection_bound = std::abs(p.scale) * head.query_rest * head.key_rest;
  }
};

}  // namespace

template <class E>
std::size_t statistics_workspace(const Problem<E>& problem, int threads) {
  Arena arena;
  Pass<E>(problem, threads, arena);
  return arena.used();
}

template <class E>
void statistics(const Problem<E>& problem, const Options& options, std::span<HeadStatistics> heads,
                double* basis, const Parallel& parallel, std::span<std::byte> workspace) {
  const std::int64_t kv_heads = problem.shape.kv_heads,
                     square = problem.shape.head_size * problem.shape.head_size;
  require(heads.size() == static_cast<std::size_t>(kv_heads),
          "statistics have one place for each head of keys");
  Arena arena(workspace);
  const Pass<E> pass(problem, parallel.threads, arena);
  const auto at = [&](std::int64_t kh) -> HeadStatistics& { return heads[static_cast<std::size_t>(kh)]; };
  pass.compute_means(parallel);
  pass.compute_moments(parallel);
  for_each(parallel, kv_heads,
           [&](std::int64_t kh, int thread) { pass.finish(kh, options, pass.threads.of(thread), at(kh)); });
  if (basis != nullptr) std::copy_n(pass.basis, kv_heads * square, basis);
  pass.compute_rests(heads, parallel);
  for (std::int64_t kh = 0; kh < kv_heads; ++kh) pass.finish_rest(kh, at(kh));
}

void copy_columns(const double* basis, std::int64_t head_size, std::int64_t rank, double* out) {
  for (std::int64_t row = 0; row < head_size; ++row)
    std::copy_n(basis + row * head_size, rank, out + row * rank);
}

#define LOIPE_INSTANTIATE(E)                                                                      \
  template std::size_t statistics_workspace(const Problem<E>&, int);                              \
  template void statistics(const Problem<E>&, const Options&, std::span<HeadStatistics>, double*, \
                           const Parallel&, std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::statistics
