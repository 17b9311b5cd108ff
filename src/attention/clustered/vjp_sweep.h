// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/importance.h"
#include "attention/clustered/sampled_queries.h"

namespace loipe::attention::clustered {

/// Derivatives by clustered attention. For a few heads of keys at once: cluster the keys; then for each chunk
/// of queries
///   1. blocks: each packs its queries, chooses their clusters, and takes the direct keys, whose sums belong
///   to
///      the block;
///   2. groups of clusters: each gathers the queries that have taken one of its clusters; sums for the
///   members
///      of a cluster belong to its group, for dQ each group has sums of its own;
///   3. blocks: each takes the means of all other clusters, with weights that fill up to 1 what direct and
///      taken keys left; sums for means belong to the block;
///   4. dQ is the sum over blocks and groups, in their order;
/// and at the end what the means have got is handed to the members.
template <class E>
class VjpSweep {
 public:
  using T = Accumulator<E>;
  VjpSweep(const Problem<E>& problem, const Budget& budget, int threads, Arena& arena);
  void run(const Saved<E>& saved, const Cotangents<E>& cotangents, const InputCotangents<E>& results,
           const Parallel& parallel);

 private:
  /// What is kept for one of the heads of keys at once.
  struct Head {
    QueryChunk<T> queries;
    T* dq;                     ///< [1 + groups][slots][head_size]: of blocks, of groups
    T* mass;                   ///< [1 + groups][slots]: weights of direct keys, of groups
    T *mean_dk, *mean_dv;      ///< [blocks][clusters padded][..]
    T *direct_dk, *direct_dv;  ///< [blocks][direct keys][..]
    T *member_dk, *member_dv;  ///< [keys][..]
    T* level;                  ///< of importance, at which clusters are taken
  };
  struct Memory {
    LaneTile<T> lanes;
    PackedMeans<T> means;
    RowStrip<T> strip;
    T *weights, *dx;       // [kTileRows][lanes]
    T* dq;                 // [head_size][lanes]
    T* dq_rows;            // [lanes][head_size]
    T *mass, *thresholds;  // [lanes]
    T *dk, *dv;            // [kStripRows][..]
    T *front_k, *front_v;  // [blocks + 1][..], in `hand_to_members`
  };
  /// Rows of a tile and where their sums go.
  struct TileRows {
    const RowStrip<T>* strip;
    std::int64_t count;
    const T* additive;
    T *dk, *dv;
  };

  Head take_head(Arena& arena) const;
  Memory take_memory(Arena& arena) const;
  Memory memory_of(int thread) const {
    Arena own = memory_.of(thread);
    return take_memory(own);
  }
  void run_chunk(const ChunkRange& range, std::int64_t heads, const Parallel& parallel);
  void take_block(const ChunkRange& range, std::int64_t block, std::int64_t position, const Memory& m) const;
  void find_level(std::int64_t key_head, std::int64_t position, Arena memory) const;
  void choose(const BlockOfReader& b, std::int64_t lane, std::int64_t position, const Memory& m) const;
  /// Calls body(first lane) with each tile of the block's queries in the lanes and their clusters chosen.
  template <class Body>
  void for_each_choice(const BlockOfReader& b, std::int64_t position, Memory& m, Body&& body) const;
  void take_means_of(const ChunkRange& range, std::int64_t block, std::int64_t position,
                     const Memory& m) const;
  void fill_up_means(std::int64_t position, const Memory& m) const;
  void take_direct(const ChunkRange& range, std::int64_t block, std::int64_t position, Memory& m) const;
  void take_group(const ChunkRange& range, std::int64_t group, std::int64_t position, Memory& m) const;
  void clear_sums(const Memory& m) const;
  /// The rows against the lanes that have been added, which are used up.
  void take_gathered(const TileRows& rows, T* dq, T* mass, std::int64_t position, Memory& m) const;
  void fill_lanes(std::int64_t position, const Memory& m) const;
  enum class Wanted : std::uint8_t { derivatives, mass };
  void take_rows(const TileRows& rows, Wanted wanted, const Memory& m) const;
  void add_dq(T* dq, Memory& m) const;
  void write_dq(const BlockOfReader& b, std::int64_t position) const;
  void write_row(const BlockOfReader& b, std::int64_t slot, T factor, std::int64_t position) const;
  void sum_parts(const KeyClusters<T>& keys, std::int64_t cluster, std::int64_t width, T* of_means,
                 T* front) const;
  void hand_to_members(std::int64_t key_head, std::int64_t cluster, std::int64_t position,
                       const Memory& m) const;
  void write_excluded(std::int64_t key_head) const;

  const Problem<E>& problem_;
  Plan<E> plan_;
  QueryPacking<E> packing_;
  std::int64_t heads_at_once_;
  KeyClustering<E> clustering_;
  Saved<E> saved_{};
  Cotangents<E> cotangents_{};
  InputCotangents<E> results_{};
  Head* heads_;
  ThreadMemory memory_;
};

}  // namespace loipe::attention::clustered
