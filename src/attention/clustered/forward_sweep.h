// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/query_chunk.h"

namespace loipe::attention::clustered {

/// The softmax over the direct keys, the members of the clusters taken, and the means of the others, in the
/// order of VjpSweep: running softmaxes of blocks and of groups of clusters, joined at the end.
template <class E>
class ForwardSweep {
 public:
  using T = Accumulator<E>;
  ForwardSweep(const Problem<E>& problem, const Budget& budget, int threads, Arena& arena);
  void run(const ForwardResults<E>& results, const Parallel& parallel);

 private:
  /// Running softmaxes of the slots of a chunk, [1 + groups][slots] each: of blocks, of groups.
  struct Head {
    QueryChunk<T> queries;
    T *maximum, *sum;
    T* o;  ///< times [value_size]
  };
  struct Memory {
    LaneTile<T> lanes;
    PackedMeans<T> means;
    RowStrip<T> strip;
    T *scores, *additive;  // [kTileRows][lanes]
    T *maximum, *sum;      // [lanes]
    T *o, *o_rows;         // [value_size][lanes], [lanes][value_size]
  };
  struct TileRows {
    const RowStrip<T>* strip;
    std::int64_t count;
    const T* additive;  ///< null: limits of the lanes
  };

  Head take_head(Arena& arena) const;
  Memory take_memory(Arena& arena) const;
  Memory memory_of(int thread) const {
    Arena own = memory_.of(thread);
    return take_memory(own);
  }
  void run_chunk(const ChunkRange& range, std::int64_t heads, const Parallel& parallel);
  void clear(std::int64_t position, std::int64_t part, Span slots) const;
  void take_block(const ChunkRange& range, std::int64_t block, std::int64_t position, const Memory& m) const;
  void take_means_of(const BlockOfReader& b, std::int64_t position, Memory& m) const;
  void take_direct(const ChunkRange& range, std::int64_t block, std::int64_t position, Memory& m) const;
  void take_group(const ChunkRange& range, std::int64_t group, std::int64_t position, Memory& m) const;
  /// The rows against the lanes that have been added, which are used up.
  void take_rows(const TileRows& rows, std::int64_t part, std::int64_t position, Memory& m) const;
  void fill_additive(std::int64_t whole_rows, std::int64_t rows, const Memory& m) const;
  void write(const BlockOfReader& b, std::int64_t position) const;

  const Problem<E>& problem_;
  Plan<E> plan_;
  QueryPacking<E> packing_;
  std::int64_t heads_at_once_;
  KeyClustering<E> clustering_;
  ForwardResults<E> results_{};
  Head* heads_;
  ThreadMemory memory_;
};

}  // namespace loipe::attention::clustered
