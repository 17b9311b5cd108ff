// SPDX-License-Identifier: Apache-2.0
#include "attention/certificate/pair_pass.h"

#include <cmath>

namespace loipe::attention::certificate {

namespace {

template <class E>
double squared_norm(const E* row, std::int64_t size) {
  double sum = 0;
  for (std::int64_t c = 0; c < size; ++c) sum += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  return sum;
}

template <class E>
double product(const E* a, const E* b, std::int64_t size) {
  double sum = 0;
  for (std::int64_t c = 0; c < size; ++c) sum += static_cast<double>(a[c]) * static_cast<double>(b[c]);
  return sum;
}

}  // namespace

template <class E>
PairPass<E>::PairPass(const Extents<E>& extents, const RowPass<E>& rows, const Cotangents<E>& cotangents,
                      const Rows<const E>& o, const Polynomial<E>& polynomial, int threads, Arena& arena)
    : e_(extents), rows_(rows), cotangents_(cotangents), o_(o), polynomial_(polynomial) {
  const Shape& s = e_.problem.shape;
  lanes_ = arena.take<Lanes>(s.heads * e_.row_panels);
  for (std::int64_t p = 0; p < s.heads * e_.row_panels; ++p) {
    const Lanes lanes = take_lanes(e_, arena);
    if (lanes_ != nullptr) lanes_[p] = lanes;
  }
  partials_ = arena.take<double>(s.kv_heads * e_.keys.count * (2 + pairs_size()));
  Arena block;
  BlockMemory<E>::take(e_, block);
  threads_ = ThreadMemory(arena, block.used(), threads);
}

template <class E>
typename PairPass<E>::Lanes PairPass<E>::take_lanes(const Extents<E>& e, Arena& arena) {
  Lanes l;
  for (E** at : {&l.shift, &l.mean, &l.reciprocal, &l.approximate_mean}) *at = arena.take<E>(e.lanes);
  l.a = arena.take<E>(e.lanes * e.a_width), l.b = arena.take<E>(e.lanes * e.b_width);
  return l;
}

template <class E>
typename PairPass<E>::Partial PairPass<E>::partial_of(std::int64_t kh, std::int64_t chunk) const {
  double* const at = partials_ + (kh * e_.keys.count + chunk) * (2 + pairs_size());
  return {at, at + 2};
}

template <class E>
void PairPass<E>::run(const Parallel& parallel) {
  const Shape& s = e_.problem.shape;
  for_each(parallel, s.heads, [&](std::int64_t head, int) { set_lanes(head); });
  for_each(parallel, s.kv_heads * e_.keys.count, [&](std::int64_t task, int thread) {
    Arena own = threads_.of(thread);
    run_chunk(task / e_.keys.count, task % e_.keys.count, BlockMemory<E>::take(e_, own));
  });
}

template <class E>
void PairPass<E>::set_lanes(std::int64_t head) {
  const Problem<E>& p = e_.problem;
  const E* const v_mean = e_.value_mean_of(p.shape.key_head(head));
  for (std::int64_t draw = 0; draw < e_.row_panels * e_.lanes; ++draw) {
    const Lanes& l = lanes_[head * e_.row_panels + draw / e_.lanes];
    const std::int64_t lane = draw % e_.lanes;
    E *const a = l.a + lane * e_.a_width, *const b = l.b + lane * e_.b_width;
    std::fill_n(a, e_.a_width, E{0}), std::fill_n(b, e_.b_width, E{0});
    l.shift[lane] = l.mean[lane] = l.reciprocal[lane] = l.approximate_mean[lane] = 0;
    if (draw >= e_.rows) continue;
    const Draw& d = rows_.draw(head, draw);
    const double lse = rows_.centred_lse(head, draw);
    l.shift[lane] =
        static_cast<E>(std::isfinite(lse) ? lse * kLog2E : std::numeric_limits<double>::infinity());
    l.mean[lane] = static_cast<E>(rows_.mean(head, draw));
    const E denominator = get(polynomial_.denominator, head, d.row, 0);
    l.reciprocal[lane] = denominator > 0 ? 1 / denominator : E{0};
    double mean = cotangents_.lse ? -static_cast<double>(get(cotangents_.lse, head, d.row, 0)) : 0.0;
    const E weight = static_cast<E>(d.weight);
    for (std::int64_t c = 0; c < e_.value_size(); ++c) {
      const E g = get(cotangents_.o, head, d.row, c);
      mean += static_cast<double>(g) *
              (static_cast<double>(get(o_, head, d.row, c)) - static_cast<double>(v_mean[c]));
      b[c] = weight * g;
    }
    l.approximate_mean[lane] = static_cast<E>(mean);
    for (std::int64_t c = 0; c < e_.head_size(); ++c)
      a[c] = weight * static_cast<E>(p.scale) * get(p.q, head, d.row, c);
  }
}

template <class E>
void PairPass<E>::run_chunk(std::int64_t kh, std::int64_t chunk, const BlockMemory<E>& m) const {
  const Problem<E>& p = e_.problem;
  const std::int64_t readers = p.shape.readers();
  const Partial partial = partial_of(kh, chunk);
  std::fill_n(partial.squares, 2 + pairs_size(), 0.0);
  const PolynomialWeights<E> weights(*polynomial_.approximation, kh);
  const std::uint8_t* const is_allowed = key_mask_at(p.mask, kh, 0);
  const statistics::BlockReader<E> keys{p.k, e_.head_size(), e_.a_width, e_.key_mean_of(kh), is_allowed, m.a},
      values{p.v, e_.value_size(), e_.b_width, e_.value_mean_of(kh), is_allowed, m.b};
  const statistics::Chunk all = e_.keys.of(kh, chunk);
  for (std::int64_t block = all.first; block < all.first + all.count; block += kBlockRows) {
    const std::int64_t rows = std::min<std::int64_t>(kBlockRows, all.first + all.count - block);
    const E *const a = keys.read({kh, block, rows}), *const b = values.read({kh, block, rows});
    std::fill_n(m.difference_a, kBlockRows * e_.a_width, E{0});
    std::fill_n(m.difference_b, kBlockRows * e_.b_width, E{0});
    for (std::int64_t panel = 0; panel < readers * e_.row_panels; ++panel) {
      const std::int64_t head = kh * readers + panel / e_.row_panels, own = panel % e_.row_panels;
      SampleTile<E> tile{};
      if (set_tile(e_, rows_.panel(head, own), block, rows, a, b,
                   is_allowed == nullptr ? nullptr : is_allowed + block, m, tile))
        take_block(head, own, tile, block, weights, partial.pairs + panel * 4 * e_.lanes, m);
    }
    partial.squares[0] += squared_norm(m.difference_a, rows * e_.a_width);
    partial.squares[1] += squared_norm(m.difference_b, rows * e_.b_width);
  }
}

template <class E>
void PairPass<E>::take_block(std::int64_t head, std::int64_t panel, const SampleTile<E>& tile,
                             std::int64_t block, const PolynomialWeights<E>& weights, double* pairs,
                             const BlockMemory<E>& m) const {
  const Lanes& l = lanes_[head * e_.row_panels + panel];
  PairTile<E> t{};
  t.tile = tile;
  t.lane_shift = l.shift, t.lane_mean = l.mean;
  t.reciprocal_denominator = l.reciprocal, t.approximate_mean = l.approximate_mean;
  const bool has_window =
      set_near(polynomial_.approximation->window, e_.lanes, block, m, [&](std::int64_t lane) {
        return rows_.draw(head, std::min(panel * e_.lanes + lane, e_.rows - 1)).row;
      });
  if (has_window) t.near_first = m.near_first, t.near_last = m.near_last;
  t.coefficients = weights.value.data(), t.derivative = weights.slope.data(), t.degree = weights.degree;
  t.lane_a = l.a, t.lane_b = l.b;
  t.difference_a = m.difference_a, t.difference_b = m.difference_b;
  t.square_t = pairs, t.cross_t = pairs + e_.lanes;
  t.square_u = pairs + 2 * e_.lanes, t.cross_u = pairs + 3 * e_.lanes;
  e_.kernels.pairs(t);
}

/// The deviation of |Y|^2 less its diagonal, 2 sum over pairs of parts of <Z, Z'>^2 for their deviations Z,
/// taken as the squared energy times the mean squared cosine of two independent draws of one part.
template <class E>
typename PairPass<E>::Square PairPass<E>::square(std::int64_t which) const {
  const Shape& s = e_.problem.shape;
  const std::int64_t size = which == 0 ? e_.a_width : e_.b_width, chunks = e_.keys.count;
  double total = 0, variance = 0;
  for (std::int64_t kh = 0; kh < s.kv_heads; ++kh) {
    double y = 0, diagonal = 0, energy = 0, crosses = 0, products = 0;
    for (std::int64_t c = 0; c < chunks; ++c) y += partial_of(kh, c).squares[which];
    for (std::int64_t panel = 0; panel < s.readers() * e_.row_panels; ++panel) {
      const std::int64_t head = kh * s.readers() + panel / e_.row_panels, own = panel % e_.row_panels;
      const Lanes& l = lanes_[head * e_.row_panels + own];
      const auto sum = [&](std::int64_t kind, std::int64_t lane) {
        double over_chunks = 0;
        for (std::int64_t c = 0; c < chunks; ++c)
          over_chunks += partial_of(kh, c).pairs[(panel * 4 + 2 * which + kind) * e_.lanes + lane];
        return over_chunks;
      };
      for (std::int64_t lane = 0; lane < e_.lanes && own * e_.lanes + lane < e_.rows; lane += 2) {
        const E *const one = (which == 0 ? l.a : l.b) + lane * size, *const other = one + size;
        const double first = sum(0, lane) * squared_norm(one, size);
        const double second = sum(0, lane + 1) * squared_norm(other, size);
        const double cross = sum(1, lane) * product(one, other, size);
        diagonal += first + second - 2 * cross;
        energy += first + second;
        crosses += cross * cross, products += first * second;
      }
    }
    total += y - diagonal;
    variance += products > 0 ? 2 * energy * energy * crosses / products : 0;
  }
  return {total, std::sqrt(variance)};
}

template class PairPass<float>;
template class PairPass<double>;

}  // namespace loipe::attention::certificate
