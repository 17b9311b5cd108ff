// SPDX-License-Identifier: Apache-2.0
#include "attention/certificate/column_pass.h"

#include <cmath>

namespace loipe::attention::certificate {

template <class E>
ColumnPass<E>::ColumnPass(const Extents<E>& extents, const Draw* draws, const Cotangents<E>& cotangents,
                          const ExactForward<E>& exact, const Polynomial<E>& polynomial,
                          const Rows<const E>& approximate_o, int threads, Arena& arena)
    : e_(extents),
      draws_(draws),
      cotangents_(cotangents),
      exact_(exact),
      polynomial_(polynomial),
      o_(exact.lse ? exact.o : approximate_o),
      parts_(e_.problem.shape.readers() * e_.queries.count) {
  const std::int64_t heads = e_.problem.shape.kv_heads, panels = heads * e_.column_panels;
  panels_ = arena.take<Panel<E>>(panels);
  for (std::int64_t p = 0; p < panels; ++p) {
    const Panel<E> panel = Panel<E>::take(e_, arena);
    if (panels_ != nullptr) panels_[p] = panel;
  }
  sums_ = arena.take<E>(panels * parts_ * (2 * e_.a_width + e_.b_width) * e_.lanes);
  projected_ = arena.take<E>(panels * e_.a_width * e_.lanes);
  factors_ = arena.take<E>(panels * e_.lanes);
  slopes_ = arena.take<double>(heads * e_.columns * 2 * e_.head_size());
  dk_ = arena.take<double>(heads * e_.columns * e_.head_size());
  dv_ = arena.take<double>(heads * e_.columns * e_.value_size());
  Arena block;
  BlockMemory<E>::take(e_, block);
  threads_ = ThreadMemory(arena, block.used(), threads);
}

template <class E>
typename ColumnPass<E>::Sums ColumnPass<E>::sums_of(std::int64_t kh, std::int64_t panel,
                                                    std::int64_t part) const {
  E* const sums =
      sums_ + ((kh * e_.column_panels + panel) * parts_ + part) * (2 * e_.a_width + e_.b_width) * e_.lanes;
  return {sums, sums + e_.a_width * e_.lanes, sums + (e_.a_width + e_.b_width) * e_.lanes};
}

template <class E>
void ColumnPass<E>::run(const Parallel& parallel) {
  const std::int64_t heads = e_.problem.shape.kv_heads;
  for_each(parallel, heads, [&](std::int64_t kh, int) { set_panels(kh); });
  for_each(parallel, heads * parts_, [&](std::int64_t task, int thread) {
    Arena own = threads_.of(thread);
    run_chunk(task / parts_, task % parts_, BlockMemory<E>::take(e_, own));
  });
  for_each(parallel, heads, [&](std::int64_t kh, int) {
    for (std::int64_t draw = 0; draw < e_.columns; ++draw) finish(kh, draw);
  });
}

/// out = B B^T in, of vectors whose elements lie `lanes` apart.
template <class E>
template <class T>
void ColumnPass<E>::project(std::int64_t kh, const T* in, std::int64_t stride, T* out) const {
  const std::int64_t d = e_.head_size(), rank = polynomial_.approximation->rank;
  const double* const basis = polynomial_.approximation->basis + kh * d * rank;
  for (std::int64_t x = 0; x < d; ++x) out[x * stride] = 0;
  for (std::int64_t r = 0; r < rank; ++r) {
    double coordinate = 0;
    for (std::int64_t x = 0; x < d; ++x)
      coordinate += basis[x * rank + r] * static_cast<double>(in[x * stride]);
    for (std::int64_t x = 0; x < d; ++x) out[x * stride] += static_cast<T>(coordinate * basis[x * rank + r]);
  }
}

/// Samples are centred keys, with the factor of scores, and centred values.
template <class E>
void ColumnPass<E>::set_panels(std::int64_t kh) {
  const Problem<E>& p = e_.problem;
  const E *const k_mean = e_.key_mean_of(kh), *const v_mean = e_.value_mean_of(kh);
  const std::uint8_t* const is_allowed = key_mask_at(p.mask, kh, 0);
  for (std::int64_t panel = 0; panel < e_.column_panels; ++panel) {
    Panel<E>& to = panels_[kh * e_.column_panels + panel];
    to.clear(e_);
    E* const factors = factors_ + (kh * e_.column_panels + panel) * e_.lanes;
    std::fill_n(factors, e_.lanes, E{0});
    E* const projected = projected_ + (kh * e_.column_panels + panel) * e_.a_width * e_.lanes;
    std::fill_n(projected, e_.a_width * e_.lanes, E{0});
    const std::int64_t used = std::min(e_.lanes, e_.columns - panel * e_.lanes);
    for (std::int64_t lane = 0; lane < used; ++lane) {
      const Draw& draw = draws_[at(kh, panel * e_.lanes + lane)];
      const std::int64_t j = draw.row;
      factors[lane] = static_cast<E>(draw.weight);
      if (is_allowed != nullptr && is_allowed[j] == 0) {
        to.set_range(lane, {0, -1});  // nothing looks at it
        continue;
      }
      for (std::int64_t c = 0; c < e_.head_size(); ++c)
        to.a[c * e_.lanes + lane] = (get(p.k, kh, j, c) - k_mean[c]) * e_.score_factor();
      if (is_projected()) project(kh, to.a + lane, e_.lanes, projected + lane);
      for (std::int64_t c = 0; c < e_.value_size(); ++c)
        to.b[c * e_.lanes + lane] = get(p.v, kh, j, c) - v_mean[c];
      to.set_range(lane, queries_of(p.mask, j));
    }
    to.finish(e_, used);
  }
}

/// Of the rows of a block: lse less what centring takes, in base 2, or for a polynomial 1 / denominator; and
/// <g, O - mean v> - dL/dlse.
template <class E>
void ColumnPass<E>::set_rows(std::int64_t head, std::int64_t block, std::int64_t rows, const E* g,
                             const BlockMemory<E>& m) const {
  const E* const v_mean = e_.value_mean_of(e_.problem.shape.key_head(head));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t i = block + row;
    E sum = 0;
    const E* const o = o_.at(head, i);
    for (std::int64_t c = 0; c < e_.value_size(); ++c)
      sum += g[row * e_.b_width + c] * (o[c * o_.column_stride] - v_mean[c]);
    if (cotangents_.lse) sum -= get(cotangents_.lse, head, i, 0);
    bool has_keys = true;
    if (exact_.lse) {
      const double lse = static_cast<double>(get(exact_.lse, head, i, 0)) - e_.centred_logit(head, i);
      has_keys = std::isfinite(lse);
      m.shift[row] = static_cast<E>(has_keys ? lse * kLog2E : std::numeric_limits<double>::infinity());
    } else {
      const E denominator = get(polynomial_.denominator, head, i, 0);
      has_keys = denominator > 0;
      m.shift[row] = has_keys ? 1 / denominator : E{0};
    }
    m.mean[row] = has_keys ? sum : E{0};
  }
}

template <class E>
void ColumnPass<E>::take_known(std::int64_t kh, std::int64_t panel, std::int64_t part,
                               const SampleTile<E>& tile, const BlockMemory<E>& m) const {
  const Sums s = sums_of(kh, panel, part);
  KnownTile<E> t{};
  t.tile = tile;
  t.row_shift = m.shift, t.row_mean = m.mean;
  t.sum_a = s.a, t.sum_b = s.b;
  e_.kernels.known(t);
}

template <class E>
void ColumnPass<E>::take_differences(std::int64_t kh, std::int64_t panel, std::int64_t part,
                                     std::int64_t block, const SampleTile<E>& tile,
                                     const BlockMemory<E>& m) const {
  const Sums s = sums_of(kh, panel, part);
  const PolynomialWeights<E> weights(*polynomial_.approximation, kh);
  DifferenceTile<E> t{};
  t.tile = tile;
  t.row_reciprocal = m.shift, t.row_mean = m.mean;
  t.lane_factor = factors_ + (kh * e_.column_panels + panel) * e_.lanes;
  const bool has_window =
      set_near(polynomial_.approximation->window, e_.lanes, block, m, [&](std::int64_t lane) {
        return draws_[at(kh, std::min(panel * e_.lanes + lane, e_.columns - 1))].row;
      });
  if (has_window) t.near_first = m.near_first, t.near_last = m.near_last;
  t.coefficients = weights.value.data(), t.derivative = weights.slope.data(), t.degree = weights.degree;
  t.is_paper = polynomial_.approximation->gradient == almost_linear::Gradient::paper;
  t.slopes = m.slopes, t.exponentials = m.exponentials, t.projected = m.projected;
  if (is_projected())
    t.sample_projected = projected_ + (kh * e_.column_panels + panel) * e_.a_width * e_.lanes;
  t.sum_slopes_a = s.slopes_a;
  t.sum_a = s.a, t.sum_b = s.b;
  e_.kernels.differences(t);
}

template <class E>
void ColumnPass<E>::run_chunk(std::int64_t kh, std::int64_t part, const BlockMemory<E>& m) const {
  const Problem<E>& p = e_.problem;
  const std::int64_t head = kh * p.shape.readers() + part / e_.queries.count;
  for (std::int64_t panel = 0; panel < e_.column_panels; ++panel)
    std::fill_n(sums_of(kh, panel, part).a, (2 * e_.a_width + e_.b_width) * e_.lanes, E{0});
  const statistics::BlockReader<E> queries{p.q, e_.head_size(), e_.a_width, nullptr, nullptr, m.a},
      cotangents{cotangents_.o, e_.value_size(), e_.b_width, nullptr, nullptr, m.b};
  const statistics::Chunk all = e_.queries.of(head, part % e_.queries.count);
  for (std::int64_t block = all.first; block < all.first + all.count; block += kBlockRows) {
    const std::int64_t rows = std::min<std::int64_t>(kBlockRows, all.first + all.count - block);
    const E *const a = queries.read({head, block, rows}), *const b = cotangents.read({head, block, rows});
    set_rows(head, block, rows, b, m);
    for (std::int64_t panel = 0; panel < e_.column_panels; ++panel) {
      SampleTile<E> tile{};
      if (!set_tile<E>(e_, panels_[kh * e_.column_panels + panel], block, rows, a, b, nullptr, m, tile))
        continue;
      if (exact_.lse) take_known(kh, panel, part, tile, m);
      else take_differences(kh, panel, part, block, tile, m);
    }
  }
}

/// The polynomial's dK lies within the basis: it is B B^T of what queries give, that of exact attention is
/// not.
template <class E>
void ColumnPass<E>::finish(std::int64_t kh, std::int64_t draw) {
  const std::int64_t panel = draw / e_.lanes, lane = draw % e_.lanes;
  const auto add = [&](double* to, std::int64_t size, E* Sums::* of) {
    std::fill_n(to, size, 0.0);
    for (std::int64_t part = 0; part < parts_; ++part) {
      const E* const sums = sums_of(kh, panel, part).*of + lane;
      for (std::int64_t c = 0; c < size; ++c) to[c] += static_cast<double>(sums[c * e_.lanes]);
    }
  };
  double* const k = dk(kh, draw);
  add(k, e_.head_size(), &Sums::a);
  add(dv(kh, draw), e_.value_size(), &Sums::b);
  if (!exact_.lse && is_projected()) {
    double *const slopes = slopes_ + at(kh, draw) * 2 * e_.head_size(), *const inside =
                                                                            slopes + e_.head_size();
    add(slopes, e_.head_size(), &Sums::slopes_a);
    project(kh, slopes, 1, inside);
    for (std::int64_t c = 0; c < e_.head_size(); ++c) k[c] -= inside[c];
  }
  for (std::int64_t c = 0; c < e_.head_size(); ++c) k[c] *= e_.problem.scale;
}

template class ColumnPass<float>;
template class ColumnPass<double>;

}  // namespace loipe::attention::certificate
