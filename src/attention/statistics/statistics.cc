// SPDX-License-Identifier: Apache-2.0
#include "attention/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/exact/packing.h"
#include "attention/statistics/basis.h"
#include "attention/statistics/moments.h"

namespace loipe::attention::statistics {

namespace {

constexpr std::int64_t kChunks = 16;  ///< pieces of rows at most, each with sums of its own, added in order
constexpr std::int64_t kSampledQueries = 32, kSampledKeys = 256;

std::int64_t padded(std::int64_t size) { return round_up(size, kPad); }

/// Keeps NaN.
void take_larger(double& largest, double x) {
  if (!(x <= largest) && !std::isnan(largest)) largest = x;
}

/// A range of rows of one head, and of which head.
struct Chunk {
  std::int64_t head, first, count;
};

/// Rows cut into at most kChunks pieces, by their number alone.
struct Chunks {
  std::int64_t rows, size, count;
  explicit Chunks(std::int64_t r)
      : rows(r),
        size(round_up(std::max<std::int64_t>(divide_up(r, kChunks), 1024), kBlockRows)),
        count(divide_up(r, size)) {}
  Chunk of(std::int64_t head, std::int64_t chunk) const {
    return {head, chunk * size, std::min(size, rows - chunk * size)};
  }
};

/// What a chunk of queries (all readers), of keys or of values adds.
struct Sums {
  double* moments;  ///< [width][width]; absent for values
  double largest;   ///< squared norm
};

template <class E>
struct Pass {
  const Problem<E>& p;
  const Options& options;
  std::int64_t width, value_width;
  Chunks queries, keys;
  E *key_mean, *value_mean;                       ///< [kv_heads][width], [kv_heads][value_width]
  double *query_moments, *key_moments;            ///< [kv_heads][chunks][width][width]
  double *query_norms, *key_norms, *value_norms;  ///< [kv_heads][chunks]
  double *query_rests, *key_rests;                ///< [kv_heads][chunks]
  double *q, *k;                                  ///< [kv_heads][head_size][head_size]
  double* basis;                                  ///< [kv_heads][head_size][head_size]
  ThreadMemory threads;

  Pass(const Problem<E>& problem, const Options& o, int thread_count, Arena& arena)
      : p(problem),
        options(o),
        width(padded(problem.shape.head_size)),
        value_width(padded(problem.shape.value_size)),
        queries(problem.shape.queries),
        keys(problem.shape.keys) {
    const std::int64_t heads = p.shape.kv_heads, d = p.shape.head_size;
    key_mean = arena.take<E>(heads * width), value_mean = arena.take<E>(heads * value_width);
    query_moments = arena.take<double>(heads * queries.count * width * width);
    key_moments = arena.take<double>(heads * keys.count * width * width);
    query_norms = arena.take<double>(heads * queries.count),
    query_rests = arena.take<double>(heads * queries.count);
    key_norms = arena.take<double>(heads * keys.count), key_rests = arena.take<double>(heads * keys.count);
    value_norms = arena.take<double>(heads * keys.count);
    q = arena.take<double>(heads * d * d), k = arena.take<double>(heads * d * d);
    basis = arena.take<double>(heads * d * d);
    Arena one;
    take_block(one), take_sample(one), BasisMemory(d, one);
    threads = ThreadMemory(arena, one.used(), thread_count);
  }

  struct Block {
    E* rows;     ///< [kBlockRows][max of widths]
    E* moments;  ///< [width][width]
    double* rests;
  };
  Block take_block(Arena& arena) const {
    return {arena.take<E>(kBlockRows * std::max(width, value_width)), arena.take<E>(width * width),
            arena.take<double>(width)};
  }
  struct Sample {
    E *keys, *logits;  ///< [head_size][kSampledKeys], [kSampledKeys]
  };
  Sample take_sample(Arena& arena) const {
    return {arena.take<E>(width * kSampledKeys), arena.take<E>(kSampledKeys)};
  }

  /// Calls body(rows[kBlockRows][width]) for blocks of a chunk; rows that are not there are 0.
  template <class Body>
  void for_each_block(const Rows<const E>& from, const Chunk& chunk, std::int64_t columns, std::int64_t w,
                      const E* mean, const std::uint8_t* is_allowed, const Block& block, Body&& body) const {
    for (std::int64_t at = 0; at < chunk.count; at += kBlockRows) {
      const RowRange<E> range{chunk.head,
                              chunk.first + at,
                              std::min(kBlockRows, chunk.count - at),
                              E{1},
                              mean,
                              is_allowed == nullptr ? nullptr : is_allowed + chunk.first + at};
      load_rows(from, range, columns, block.rows, w, kBlockRows);
      body(block.rows);
    }
  }

  /// Adds the moments and the largest norm of a chunk.
  void add(const Rows<const E>& from, const Chunk& chunk, const E* mean, const std::uint8_t* is_allowed,
           const Block& block, double* moments, double& largest) const {
    for_each_block(from, chunk, p.shape.head_size, width, mean, is_allowed, block, [&](const E* rows) {
      std::fill(block.moments, block.moments + width * width, E{0});
      add_moments(rows, width, block.moments);
      for (std::int64_t i = 0; i < width * width; ++i) moments[i] += static_cast<double>(block.moments[i]);
      take_norms(rows, width, largest);
    });
  }
  static void take_norms(const E* rows, std::int64_t w, double& largest) {
    double norms[kBlockRows];
    squared_norms(rows, w, norms);
    for (const double norm : norms) take_larger(largest, norm);
  }

  void query_chunk(std::int64_t kh, std::int64_t c, const Block& block) const {
    double* const moments = query_moments + (kh * queries.count + c) * width * width;
    double& largest = query_norms[kh * queries.count + c] = 0;
    std::fill(moments, moments + width * width, 0.0);
    const std::int64_t readers = p.shape.readers();
    for (std::int64_t h = kh * readers; h < (kh + 1) * readers; ++h)
      add(p.q, queries.of(h, c), nullptr, nullptr, block, moments, largest);
  }
  void key_chunk(std::int64_t kh, std::int64_t c, const Block& block) const {
    const std::uint8_t* const is_allowed = key_mask_at(p.mask, kh, 0);
    double* const moments = key_moments + (kh * keys.count + c) * width * width;
    double& largest = key_norms[kh * keys.count + c] = 0;
    std::fill(moments, moments + width * width, 0.0);
    add(p.k, keys.of(kh, c), key_mean + kh * width, is_allowed, block, moments, largest);
    double& largest_value = value_norms[kh * keys.count + c] = 0;
    for_each_block(p.v, keys.of(kh, c), p.shape.value_size, value_width, value_mean + kh * value_width,
                   is_allowed, block, [&](const E* rows) { take_norms(rows, value_width, largest_value); });
  }

  /// Squared norms of what lies outside of the first `rank` columns, at most.
  double rest_of(const Rows<const E>& from, const Chunk& chunk, const E* mean, const std::uint8_t* is_allowed,
                 const double* columns, std::int64_t rank, const Block& block) const {
    const std::int64_t d = p.shape.head_size;
    double largest = 0;
    for_each_block(from, chunk, d, width, mean, is_allowed, block, [&](const E* rows) {
      for (std::int64_t row = 0; row < kBlockRows; ++row, rows += width) {
        std::fill(block.rests, block.rests + d, 0.0);
        for (std::int64_t a = 0; a < d; ++a) {
          const double x = static_cast<double>(rows[a]);
          for (std::int64_t c = rank; c < d; ++c) block.rests[c] += x * columns[a * d + c];
        }
        double sum = 0;
        for (std::int64_t c = rank; c < d; ++c) sum += block.rests[c] * block.rests[c];
        take_larger(largest, sum);
      }
    });
    return largest;
  }

  double largest_logit(std::int64_t kh, const Sample& sample) const {
    const std::int64_t d = p.shape.head_size, n = p.shape.keys, readers = p.shape.readers();
    const std::uint8_t* const is_allowed = key_mask_at(p.mask, kh, 0);
    std::fill(sample.keys, sample.keys + d * kSampledKeys, E{0});
    const std::int64_t taken = std::min(n, kSampledKeys);
    for (std::int64_t s = 0; s < taken; ++s) {
      const std::int64_t j = s * n / taken;
      if (is_allowed != nullptr && is_allowed[j] == 0) continue;
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
};

/// The mean over `rows` rows from the sums of chunks, both halves of the matrix.
void reduce(const double* moments, std::int64_t chunks, std::int64_t width, std::int64_t size, double rows,
            double* out) {
  for (std::int64_t a = 0; a < size; ++a)
    for (std::int64_t b = a; b < size; ++b) {
      double sum = 0;
      for (std::int64_t c = 0; c < chunks; ++c) sum += moments[(c * width + a) * width + b];
      out[a * size + b] = out[b * size + a] = sum / rows;
    }
}

double largest_of(const double* values, std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) take_larger(largest, values[i]);
  return largest;
}

template <class E>
void finish_head(const Pass<E>& pass, std::int64_t kh, const std::uint8_t* is_allowed, Arena arena,
                 HeadStatistics& head) {
  const Shape& s = pass.p.shape;
  const std::int64_t d = s.head_size, square = pass.width * pass.width;
  head = {};
  head.scale = pass.p.scale;
  head.keys = is_allowed == nullptr ? s.keys : s.keys - std::count(is_allowed, is_allowed + s.keys, 0);
  double* const basis = pass.basis + kh * d * d;
  double *const q = pass.q + kh * d * d, *const k = pass.k + kh * d * d;
  const double queries = static_cast<double>(std::max<std::int64_t>(s.queries * s.readers(), 1));
  const double keys = static_cast<double>(std::max<std::int64_t>(head.keys, 1));
  reduce(pass.query_moments + kh * pass.queries.count * square, pass.queries.count, pass.width, d, queries,
         q);
  reduce(pass.key_moments + kh * pass.keys.count * square, pass.keys.count, pass.width, d, keys, k);
  double energy = 0;
  for (std::int64_t i = 0; i < d * d; ++i) energy += q[i] * k[i];
  // Second moments are not negative; a rounded trace may be.
  head.logit_spread = std::abs(head.scale) * std::sqrt(std::max(energy, energy < 0 ? 0 : energy));
  // Norms are f64 sums of squares: their rounding, below 1e-13, is counted.
  const auto norm = [](const double* values, std::int64_t count) {
    return std::sqrt(largest_of(values, count)) * (1 + 1e-13);
  };
  head.query_norm = norm(pass.query_norms + kh * pass.queries.count, pass.queries.count);
  head.key_norm = norm(pass.key_norms + kh * pass.keys.count, pass.keys.count);
  head.value_norm = norm(pass.value_norms + kh * pass.keys.count, pass.keys.count);
  head.logit_bound = std::abs(head.scale) * head.query_norm * head.key_norm;
  Arena sample_memory = arena;
  head.largest_logit = pass.largest_logit(kh, pass.take_sample(sample_memory));
  const Rank rank = choose_basis(d, q, k, pass.options.energy, BasisMemory(d, arena), basis);
  head.rank = rank.rank, head.lost_energy = rank.lost_energy;
}

}  // namespace

template <class E>
std::size_t statistics_workspace(const Problem<E>& problem, int threads) {
  Arena arena;
  Pass<E>(problem, {}, threads, arena);
  return arena.used();
}

template <class E>
void statistics(const Problem<E>& problem, const Options& options, std::span<HeadStatistics> heads,
                double* basis, const Parallel& parallel, std::span<std::byte> workspace) {
  const Shape& s = problem.shape;
  require(heads.size() == static_cast<std::size_t>(s.kv_heads),
          "statistics have one place for each head of keys");
  Arena arena(workspace);
  const Pass<E> pass(problem, options, parallel.threads, arena);
  const std::int64_t d = s.head_size, chunks = pass.queries.count + pass.keys.count;
  for_each(parallel, 2 * s.kv_heads, [&](std::int64_t task, int) {
    const std::int64_t kh = task / 2;
    if (task % 2 == 0) mean_of_keys(problem, problem.k, kh, d, pass.width, pass.key_mean + kh * pass.width);
    else
      mean_of_keys(problem, problem.v, kh, s.value_size, pass.value_width,
                   pass.value_mean + kh * pass.value_width);
  });
  for_each(parallel, s.kv_heads * chunks, [&](std::int64_t task, int thread) {
    Arena own = pass.threads.of(thread);
    const std::int64_t kh = task / chunks, c = task % chunks;
    const auto block = pass.take_block(own);
    if (c < pass.queries.count) pass.query_chunk(kh, c, block);
    else pass.key_chunk(kh, c - pass.queries.count, block);
  });
  for_each(parallel, s.kv_heads, [&](std::int64_t kh, int thread) {
    finish_head(pass, kh, key_mask_at(problem.mask, kh, 0), pass.threads.of(thread),
                heads[static_cast<std::size_t>(kh)]);
    if (basis != nullptr) std::copy_n(pass.basis + kh * d * d, d * d, basis + kh * d * d);
  });
  for_each(parallel, s.kv_heads * chunks, [&](std::int64_t task, int thread) {
    Arena own = pass.threads.of(thread);
    const std::int64_t kh = task / chunks, c = task % chunks, rank = heads[static_cast<std::size_t>(kh)].rank;
    if (rank == d) return;
    const auto block = pass.take_block(own);
    const double* const columns = pass.basis + kh * d * d;
    if (c >= pass.queries.count) {
      const std::int64_t at = c - pass.queries.count;
      pass.key_rests[kh * pass.keys.count + at] =
          pass.rest_of(problem.k, pass.keys.of(kh, at), pass.key_mean + kh * pass.width,
                       key_mask_at(problem.mask, kh, 0), columns, rank, block);
      return;
    }
    double& largest = pass.query_rests[kh * pass.queries.count + c] = 0;
    for (std::int64_t h = kh * s.readers(); h < (kh + 1) * s.readers(); ++h)
      take_larger(largest,
                  pass.rest_of(problem.q, pass.queries.of(h, c), nullptr, nullptr, columns, rank, block));
  });
  for (std::int64_t kh = 0; kh < s.kv_heads; ++kh) {
    HeadStatistics& head = heads[static_cast<std::size_t>(kh)];
    if (head.rank == d) continue;
    const double queries = largest_of(pass.query_rests + kh * pass.queries.count, pass.queries.count);
    const double keys = largest_of(pass.key_rests + kh * pass.keys.count, pass.keys.count);
    // The basis is orthonormal to 1e-13 or so; what that adds is in proportion to the whole norms.
    head.projection_bound =
        std::abs(head.scale) * std::sqrt(queries) * std::sqrt(keys) * (1 + 1e-12) + 1e-12 * head.logit_bound;
  }
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
