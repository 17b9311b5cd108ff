// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/exact/forward_pass.h"

namespace loipe::attention {

/// What VJP and its tangent are computed from; those of tangents null for a VJP alone.
template <class E>
struct BackwardProblem {
  const Problem<E>& problem;
  Saved<E> saved;
  Cotangents<E> cotangents;
  const InputTangents<E>* tangents;
  const Cotangents<E>* cotangent_tangents;
  InputCotangents<E> results;
};

/// Derivatives by sweeps over tiles of keys and blocks of queries. The rows of all query heads that
/// read one key head are cut into blocks of kQueryRows queries, blocks into chunks, tiles of keys
/// into groups. For one chunk at a time:
///   1. pack: queries and cotangents of its blocks, in both layouts; normalisers;
///   2. groups: each takes its tiles of keys through all blocks; dK and dV of a tile belong to one
///      group alone, for dQ each group has sums of its own;
///   3. reduce: dQ is the sum over groups, in their order.
/// The cuts depend on the shape alone, so that the bits do not depend on the threads.
template <class E>
class BackwardSweep {
 public:
  using T = Accumulator<E>;
  BackwardSweep(const BackwardProblem<E>& backward, int threads, Arena& arena);
  void run(const Parallel& parallel);

 private:
  /// One block of queries, packed.
  struct Block {
    T *q, *g, *qc, *gc, *maximum, *mean;  // as BackwardTile has them
    T *tq, *tg, *tqc, *tgc;               // with tangents
    T *reciprocal_sum, *tangent_mean_score, *tangent_mean;
    T* dq;  // [groups][kQueryRows][head_size]
  };
  /// Tiles of keys that one thread takes through the blocks together, so that a block is
  /// brought into the cache once for all of them.
  static constexpr std::int64_t kStrip = 4;
  /// One tile of keys, packed, and its sums.
  struct KeyTile {
    T *kt, *vt, *k, *dk, *dv;
    T *tkt, *tvt, *tk;  // with tangents
  };
  /// What a thread works in while it takes a strip through the blocks.
  struct KeyMemory {
    KeyTile tiles[kStrip];
    T *rows, *weights, *dx, *additive;
    T *tangent_weights, *tangent_dx, *tangent_additive;
  };
  /// Where a block of queries lies.
  struct Place {
    std::int64_t head, first, count;
  };
  /// A part of the work after which what was packed is packed anew.
  struct Chunk {
    std::int64_t key_head, key_heads;  ///< several only if each is one chunk
    std::int64_t block, blocks;        ///< of each key head
    bool is_first, is_last;            ///< of its key heads
  };
  /// Tiles first, first + groups, ... of a group.
  struct Strip {
    std::int64_t key_head, group, first, tiles;
  };
  /// Blocks of a key head, counted within the chunk.
  struct BlockRange {
    std::int64_t key_head, begin, end;
  };
  /// Which results a sweep computes, and for which tiles of keys.
  struct Part {
    bool has_q, has_keys;
    std::int64_t tile, tiles;
  };

  Block block_at(std::int64_t position) const;
  static Block take_block(Arena& arena, std::int64_t d, std::int64_t dv, std::int64_t groups,
                          bool has_tangents);
  KeyTile take_key_tile(Arena& arena) const;
  KeyMemory take_key_memory(Arena& arena) const;
  T* take_scratch(Arena& arena) const;  ///< [kQueryRows][max(head_size, value_size)]
  Place place_of(std::int64_t key_head, std::int64_t block) const;

  void sweep(const Parallel& parallel, const Part& part);
  void pack(const Parallel& parallel, const Chunk& chunk);
  /// Those of the range's first query head; returns how many.
  std::int64_t pack_range(const Chunk& chunk, const BlockRange& range, std::int64_t position,
                          Arena memory) const;
  void pack_queries(const Place& place, const Block& block, T* scratch) const;
  void pack_cotangents(const Place& place, const Block& block, T* scratch) const;
  void set_saved_statistics(const Place& place, const Block& block) const;
  void set_row(const Place& place, const Block& block, std::int64_t i, const QuerySums<T>& sums) const;
  void run_group(const Chunk& chunk, const Part& part, std::int64_t key_head, std::int64_t group,
                 const KeyMemory& m);
  void run_strip(const Chunk& chunk, const Part& part, const Strip& strip, const KeyMemory& m);
  KeyBlock pack_keys(std::int64_t key_head, std::int64_t tile, const KeyTile& keys, T* scratch) const;
  void begin_keys(const Chunk& chunk, std::int64_t kept, const KeyTile& keys) const;
  void take_block_of_queries(const TileRange& tile, KeyBlock allowed, const Block& block, T* dq,
                             const Part& part, const KeyMemory& m, const KeyTile& keys) const;
  void finish_keys(const Chunk& chunk, std::int64_t key_head, std::int64_t tile, std::int64_t kept,
                   const KeyTile& keys) const;
  void reduce(const Place& place, const Block& block) const;
  void add_bias(const Parallel& parallel, const Chunk& chunk);

  const BackwardProblem<E>& backward_;
  const Problem<E>& problem_;
  bool has_tangents_;
  bool uses_saved_;  ///< an O of few digits would spoil the mean of dP
  Centred<E> centred_;
  ForwardPass<E> pass_;
  std::int64_t lanes_, key_tiles_, groups_;
  std::int64_t blocks_of_head_, blocks_, chunk_blocks_, wave_heads_, kept_tiles_;
  std::size_t block_bytes_;
  std::byte* blocks_memory_;
  T* kept_;  ///< sums of dK and dV between chunks where results hold fewer digits: [tiles][d + dv][lanes]
  ThreadMemory memory_;
};

}  // namespace loipe::attention
