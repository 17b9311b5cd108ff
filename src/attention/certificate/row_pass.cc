// SPDX-License-Identifier: Apache-2.0
#include "attention/certificate/row_pass.h"

#include <cmath>

namespace loipe::attention::certificate {

namespace {

template <class E>
double lse_cotangent(const Cotangents<E>& cotangents, std::int64_t head, std::int64_t i) {
  return cotangents.lse ? static_cast<double>(get(cotangents.lse, head, i, 0)) : 0.0;
}

}  // namespace

template <class E>
RowPass<E>::RowPass(const Extents<E>& extents, const Draw* draws, const Cotangents<E>& cotangents,
                    const ExactForward<E>& exact, int threads, Arena& arena)
    : e_(extents), draws_(draws), cotangents_(cotangents), exact_(exact), has_g_(cotangents.o) {
  const std::int64_t heads = e_.problem.shape.heads, panels = heads * e_.row_panels, count = heads * e_.rows;
  panels_ = arena.take<Panel<E>>(panels);
  for (std::int64_t p = 0; p < panels; ++p) {
    const Panel<E> panel = Panel<E>::take(e_, arena);
    if (panels_ != nullptr) panels_[p] = panel;
  }
  shift_ = arena.take<E>(panels * e_.lanes), lane_mean_ = arena.take<E>(panels * e_.lanes);
  g_energy_ = arena.take<E>(panels * e_.lanes);
  key_energies_ = arena.take<double>(e_.problem.shape.kv_heads * e_.problem.shape.keys);
  Arena one;
  take_sums(one);
  sums_bytes_ = one.used();
  sums_ = arena.take<std::byte>(static_cast<std::int64_t>(sums_bytes_) * panels * e_.keys.count);
  o_ = arena.take<double>(count * e_.value_size()), dq_ = arena.take<double>(count * e_.head_size());
  lse_ = arena.take<double>(count), mean_ = arena.take<double>(count);
  Arena block;
  BlockMemory<E>::take(e_, block);
  threads_ = ThreadMemory(arena, block.used(), threads);
}

template <class E>
typename RowPass<E>::Sums RowPass<E>::take_sums(Arena& arena) const {
  Sums s;
  for (E** at : {&s.maximum, &s.sum, &s.sum_dp}) *at = arena.take<E>(e_.lanes);
  s.b = arena.take<E>(e_.b_width * e_.lanes);
  for (E** at : {&s.a, &s.dp_a}) *at = arena.take<E>(e_.a_width * e_.lanes);
  return s;
}

template <class E>
typename RowPass<E>::Sums RowPass<E>::sums_of(std::int64_t head, std::int64_t panel,
                                              std::int64_t chunk) const {
  const std::int64_t at = (head * e_.row_panels + panel) * e_.keys.count + chunk;
  Arena arena({sums_ + sums_bytes_ * static_cast<std::size_t>(at), sums_bytes_});
  return take_sums(arena);
}

template <class E>
void RowPass<E>::run(const Parallel& parallel) {
  const Shape& s = e_.problem.shape;
  for_each(parallel, s.heads, [&](std::int64_t head, int) { set_panels(head); });
  for_each(parallel, s.kv_heads * e_.keys.count, [&](std::int64_t task, int thread) {
    Arena own = threads_.of(thread);
    run_chunk(task / e_.keys.count, task % e_.keys.count, BlockMemory<E>::take(e_, own));
  });
  for_each(parallel, s.heads, [&](std::int64_t head, int) {
    for (std::int64_t draw = 0; draw < e_.rows; ++draw) finish(head, draw);
  });
}

template <class E>
void RowPass<E>::set_panels(std::int64_t head) {
  const Problem<E>& p = e_.problem;
  const E* const v_mean = e_.value_mean_of(p.shape.key_head(head));
  for (std::int64_t panel = 0; panel < e_.row_panels; ++panel) {
    Panel<E>& to = panels_[head * e_.row_panels + panel];
    to.clear(e_);
    const std::int64_t used = std::min(e_.lanes, e_.rows - panel * e_.lanes);
    for (std::int64_t lane = 0; lane < used; ++lane) {
      const std::int64_t draw = panel * e_.lanes + lane, i = draws_[at(head, draw)].row;
      for (std::int64_t c = 0; c < e_.head_size(); ++c)
        to.a[c * e_.lanes + lane] = get(p.q, head, i, c) * e_.score_factor();
      for (std::int64_t c = 0; has_g_ && c < e_.value_size(); ++c)
        to.b[c * e_.lanes + lane] = get(cotangents_.o, head, i, c);
      to.set_range(lane, keys_of(p.mask, i));
      if (!exact_.lse) continue;
      const double lse = static_cast<double>(get(exact_.lse, head, i, 0)) - e_.centred_logit(head, i);
      double mean = -lse_cotangent(cotangents_, head, i);
      for (std::int64_t c = 0; has_g_ && c < e_.value_size(); ++c)
        mean += static_cast<double>(get(cotangents_.o, head, i, c)) *
                (static_cast<double>(get(exact_.o, head, i, c)) - static_cast<double>(v_mean[c]));
      lse_[at(head, draw)] = lse, mean_[at(head, draw)] = mean;
      const std::int64_t position = (head * e_.row_panels + panel) * e_.lanes + lane;
      // A row without keys: nothing is above the shift.
      shift_[position] =
          static_cast<E>(std::isfinite(lse) ? lse * kLog2E : std::numeric_limits<double>::infinity());
      lane_mean_[position] = static_cast<E>(mean);
      double energy = 0;
      for (std::int64_t c = 0; has_g_ && c < e_.value_size(); ++c) {
        const double g = static_cast<double>(get(cotangents_.o, head, i, c));
        energy += g * g;
      }
      g_energy_[position] = static_cast<E>(draws_[at(head, draw)].weight * energy);
    }
    for (std::int64_t lane = used; lane < e_.lanes; ++lane)
      g_energy_[(head * e_.row_panels + panel) * e_.lanes + lane] = 0;
    to.finish(e_, used);
  }
}

template <class E>
void RowPass<E>::run_chunk(std::int64_t kh, std::int64_t chunk, const BlockMemory<E>& m) const {
  const Problem<E>& p = e_.problem;
  const std::int64_t readers = p.shape.readers();
  for (std::int64_t head = kh * readers; head < (kh + 1) * readers; ++head)
    for (std::int64_t panel = 0; panel < e_.row_panels; ++panel) {
      const Sums s = sums_of(head, panel, chunk);
      std::fill_n(s.maximum, e_.lanes, kNoScore<E>);
      for (E* sum : {s.sum, s.sum_dp}) std::fill_n(sum, e_.lanes, E{0});
      for (E* sum : {s.a, s.dp_a}) std::fill_n(sum, e_.a_width * e_.lanes, E{0});
      std::fill_n(s.b, e_.b_width * e_.lanes, E{0});
    }
  const std::uint8_t* const is_allowed = key_mask_at(p.mask, kh, 0);
  const statistics::BlockReader<E> keys{p.k, e_.head_size(), e_.a_width, e_.key_mean_of(kh), is_allowed, m.a},
      values{p.v, e_.value_size(), e_.b_width, e_.value_mean_of(kh), is_allowed, m.b};
  const statistics::Chunk all = e_.keys.of(kh, chunk);
  for (std::int64_t block = all.first; block < all.first + all.count; block += kBlockRows) {
    const std::int64_t rows = std::min<std::int64_t>(kBlockRows, all.first + all.count - block);
    const E *const a = keys.read({kh, block, rows}), *const b = values.read({kh, block, rows});
    std::fill_n(m.mean, kBlockRows, E{0});
    for (std::int64_t head = kh * readers; head < (kh + 1) * readers; ++head)
      for (std::int64_t panel = 0; panel < e_.row_panels; ++panel) {
        SampleTile<E> tile{};
        if (set_tile(e_, panels_[head * e_.row_panels + panel], block, rows, a, b,
                     is_allowed == nullptr ? nullptr : is_allowed + block, m, tile))
          take_block(head, panel, chunk, tile, m.mean);
      }
    if (exact_.lse)
      for (std::int64_t row = 0; row < rows; ++row)
        key_energies_[kh * p.shape.keys + block + row] = static_cast<double>(m.mean[row]);
  }
}

template <class E>
void RowPass<E>::take_block(std::int64_t head, std::int64_t panel, std::int64_t chunk,
                            const SampleTile<E>& tile, E* key_energies) const {
  const Sums s = sums_of(head, panel, chunk);
  if (exact_.lse) {
    const std::int64_t position = (head * e_.row_panels + panel) * e_.lanes;
    KnownTile<E> known{};
    known.tile = tile;
    known.lane_shift = shift_ + position, known.lane_mean = lane_mean_ + position;
    known.sum_a = s.a;
    known.lane_factor = g_energy_ + position, known.row_sum = key_energies;
    return e_.kernels.known(known);
  }
  OnlineTile<E> online{tile, s.maximum, s.sum, s.sum_dp, s.b, s.a, s.dp_a};
  if (!has_g_) online.tile.sample_b = nullptr;
  e_.kernels.online(online);
}

/// dQ = scale (sum dx (k - mean k) + dL/dlse mean k), as the rows of dX sum to dL/dlse.
template <class E>
void RowPass<E>::finish(std::int64_t head, std::int64_t draw) {
  const std::int64_t i = draws_[at(head, draw)].row;
  if (!exact_.lse) finish_online(head, draw);
  else
    for (std::int64_t c = 0; c < e_.head_size(); ++c) {
      double sum = 0;
      for (std::int64_t chunk = 0; chunk < e_.keys.count; ++chunk)
        sum += static_cast<double>(sums_of(head, draw / e_.lanes, chunk).a[c * e_.lanes + draw % e_.lanes]);
      dq(head, draw)[c] = sum;
    }
  const bool has_keys = std::isfinite(lse_[at(head, draw)]);
  const double l = has_keys ? lse_cotangent(cotangents_, head, i) : 0;
  const E* const mean = e_.key_mean_of(e_.problem.shape.key_head(head));
  for (std::int64_t c = 0; c < e_.head_size(); ++c)
    dq(head, draw)[c] = e_.problem.scale * (dq(head, draw)[c] + l * static_cast<double>(mean[c]));
}

/// With sums of w = 2^(s - maximum) over all chunks, O = sum w v / sum w, D = sum w dP / sum w - dL/dlse and
/// sum dx k = (sum w dP k - D sum w k) / sum w.
template <class E>
void RowPass<E>::finish_online(std::int64_t head, std::int64_t draw) {
  const std::int64_t panel = draw / e_.lanes, lane = draw % e_.lanes, chunks = e_.keys.count;
  double maximum = static_cast<double>(kNoScore<E>);
  for (std::int64_t c = 0; c < chunks; ++c)
    maximum = std::max(maximum, static_cast<double>(sums_of(head, panel, c).maximum[lane]));
  const auto merged = [&](auto&& number) {
    double sum = 0;
    for (std::int64_t c = 0; c < chunks; ++c) {
      const Sums s = sums_of(head, panel, c);
      sum += std::exp2(static_cast<double>(s.maximum[lane]) - maximum) * static_cast<double>(number(s));
    }
    return sum;
  };
  const double sum = merged([&](const Sums& s) { return s.sum[lane]; });
  const bool has_keys = sum != 0;
  const double over = has_keys ? 1 / sum : 0;
  const std::int64_t i = draws_[at(head, draw)].row, kh = e_.problem.shape.key_head(head);
  const double mean =
      merged([&](const Sums& s) { return s.sum_dp[lane]; }) * over - lse_cotangent(cotangents_, head, i);
  lse_[at(head, draw)] =
      has_keys ? (maximum + std::log2(sum)) * kLn2 : -std::numeric_limits<double>::infinity();
  mean_[at(head, draw)] = mean;
  const E* const v_mean = e_.value_mean_of(kh);
  for (std::int64_t c = 0; c < e_.value_size(); ++c) {
    const std::int64_t position = c * e_.lanes + lane;
    const double centred = merged([&](const Sums& s) { return s.b[position]; }) * over;
    o(head, draw)[c] = has_keys ? centred + static_cast<double>(v_mean[c]) : 0;
  }
  for (std::int64_t c = 0; c < e_.head_size(); ++c) {
    const std::int64_t position = c * e_.lanes + lane;
    dq(head, draw)[c] = (merged([&](const Sums& s) { return s.dp_a[position]; }) -
                         mean * merged([&](const Sums& s) { return s.a[position]; })) *
                        over;
  }
}

template class RowPass<float>;
template class RowPass<double>;

}  // namespace loipe::attention::certificate
