// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/key_clusters.h"

// What tiles of the kernels are made of: strips of rows (keys or means) and gathered queries.

namespace loipe::attention::clustered {

inline constexpr std::int64_t kStripRows = 4 * kTileRows;
/// Stands for a row that no cluster has.
inline constexpr double kNoRow = 1e9;

/// Rows as the kernels read them, in pieces of kTileRows.
template <class T>
struct RowStrip {
  T *k, *v;            // row groups of each piece
  T *kc, *vc;          // column groups of each piece
  T *k_rows, *v_rows;  // scratch, [kTileRows][..]
};

template <class E>
RowStrip<Accumulator<E>> take_strip(const Plan<E>& plan, std::int64_t rows, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t d = plan.centred.head_size, dv = plan.centred.value_size;
  const std::int64_t padded = round_up(rows, kTileRows);
  return {arena.take<T>(padded * d),  arena.take<T>(padded * dv),   arena.take<T>(padded * d),
          arena.take<T>(padded * dv), arena.take<T>(kTileRows * d), arena.take<T>(kTileRows * dv)};
}

/// Packs `count` rows; row_of(n) says where row n lies in k and v.
template <class E, class RowOf>
void pack_strip(const Plan<E>& plan, const Accumulator<E>* k, const Accumulator<E>* v, std::int64_t count,
                const RowStrip<Accumulator<E>>& strip, RowOf&& row_of) {
  using T = Accumulator<E>;
  const auto pack = [&](const T* from, std::int64_t width, std::int64_t begin, T* rows, T* groups,
                        T* columns) {
    const std::int64_t used = std::min<std::int64_t>(count - begin, kTileRows);
    for (std::int64_t n = 0; n < used; ++n)
      std::copy_n(from + row_of(begin + n) * width, width, rows + n * width);
    std::fill(rows + used * width, rows + kTileRows * width, T{0});
    to_row_groups(plan.centred.kernels, rows, kTileRows, width, groups + begin * width);
    to_column_groups(rows, kTileRows, width, columns + begin * width);
  };
  for (std::int64_t begin = 0; begin < count; begin += kTileRows) {
    pack(k, plan.centred.head_size, begin, strip.k_rows, strip.k, strip.kc);
    pack(v, plan.centred.value_size, begin, strip.v_rows, strip.v, strip.vc);
  }
}

/// Queries that need not be neighbours, by the numbers that they have in a chunk (QueryChunk).
template <class T>
struct LaneTile {
  std::int32_t* slots;  ///< [lanes], of which `count` are used
  T *q, *g;             // as PairTile has them
  T *q_rows, *g_rows;
  T *lse, *mean;
  T *until, *from;  ///< in rows of the strip
  T *piece_until, *piece_from;
  std::int64_t count;
};

template <class E>
LaneTile<Accumulator<E>> take_lanes(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t lanes = plan.lanes, d = plan.centred.head_size * lanes,
                     dv = plan.centred.value_size * lanes;
  LaneTile<T> tile{};
  tile.slots = arena.take<std::int32_t>(lanes);
  for (T** numbers : {&tile.q, &tile.q_rows}) *numbers = arena.take<T>(d);
  for (T** numbers : {&tile.g, &tile.g_rows}) *numbers = arena.take<T>(dv);
  for (T** numbers : {&tile.lse, &tile.mean, &tile.until, &tile.from, &tile.piece_until, &tile.piece_from})
    *numbers = arena.take<T>(lanes);
  return tile;
}

/// Limits of the rows that a lane sees, counted from the begin of a strip.
struct RowLimits {
  std::int64_t until, from;
};

inline RowLimits whole_strip(std::int64_t rows) { return {rows, static_cast<std::int64_t>(kNoRow)}; }

template <class T>
void add_lane(LaneTile<T>& tile, std::int64_t slot, const RowLimits& limits) {
  tile.slots[tile.count] = static_cast<std::int32_t>(slot);
  tile.until[tile.count] = static_cast<T>(limits.until);
  tile.from[tile.count] = static_cast<T>(limits.from);
  ++tile.count;
}

/// Lanes that are not used see nothing.
template <class T>
void close_lanes(const LaneTile<T>& tile, std::int64_t lanes) {
  std::fill(tile.until + tile.count, tile.until + lanes, T{0});
  std::fill(tile.from + tile.count, tile.from + lanes, static_cast<T>(kNoRow));
}

/// How many of the first `rows` rows hold all that any lane sees.
template <class T>
std::int64_t rows_seen(const LaneTile<T>& tile, std::int64_t rows) {
  T seen = 0;
  for (std::int64_t l = 0; l < tile.count; ++l) {
    if (tile.from[l] < static_cast<T>(rows)) return rows;
    seen = std::max(seen, tile.until[l]);
  }
  return std::min(static_cast<std::int64_t>(seen), rows);
}

/// The limits for the rows from `begin` on; returns how many of `rows` all lanes see.
template <class T>
std::int64_t set_piece(const LaneTile<T>& tile, std::int64_t lanes, std::int64_t begin, std::int64_t rows) {
  T whole = static_cast<T>(rows);
  for (std::int64_t l = 0; l < lanes; ++l) {
    tile.piece_until[l] = tile.until[l] - static_cast<T>(begin);
    tile.piece_from[l] = tile.from[l] - static_cast<T>(begin);
    whole = std::min(whole, tile.piece_until[l]);
  }
  return static_cast<std::int64_t>(std::max(whole, T{0}));
}

/// rows[lane] = from[slot of the lane], 0 for lanes that are not used; and its transpose.
template <class E>
void gather(const Plan<E>& plan, const LaneTile<Accumulator<E>>& tile, const Accumulator<E>* from,
            std::int64_t width, Accumulator<E>* rows, Accumulator<E>* transposed) {
  plan.kernels.gather({from, tile.slots, rows, transposed, width, tile.count});
}

}  // namespace loipe::attention::clustered
