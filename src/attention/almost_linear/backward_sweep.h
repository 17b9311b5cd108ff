// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/centre_share.h"
#include "attention/almost_linear/sweep.h"

namespace loipe::attention::almost_linear {

/// Derivatives by two sweeps. Over queries, with the states of the forward pass: dQ, and what the pairs of
/// one chunk give to dK and dV. Over keys, with states of queries: the rest of dK and dV. Last what reaches
/// keys through their centre.
template <class E>
class BackwardSweep {
 public:
  BackwardSweep(const BackwardProblem<E>& backward, int threads, Arena& arena);
  void run(const Parallel& parallel);

 private:
  using Addition = typename Sweep<E>::Addition;
  using Reading = typename Sweep<E>::Reading;

  /// What a thread works in.
  struct Memory {
    typename Sweep<E>::KeyMemory keys;
    E* queries;  ///< of one chunk
    typename PairTiles<E>::Memory pairs;
    E *d_x, *d_v;  ///< [size][lanes], [value_size][lanes]
    E* d_out;      ///< [head_size][lanes]
    E *dk, *dv;    ///< [chunk][size], [chunk][value_size]
  };
  const Geometry<E>& g() const { return sweep_.geometry; }
  Memory take(Arena& arena) const;

  void compute_rows(std::int64_t head, std::int64_t first) const;
  void compute_row(std::int64_t head, std::int64_t i) const;
  void load_queries(std::int64_t head, std::int64_t first, const QueryPanel<E>& to, const Memory& m) const;
  void add_queries(const Addition& addition, const Memory& m) const;
  void prefetch_keys(std::int64_t key_head, std::int64_t first) const;
  void run_queries(const Reading& reading, const Memory& m) const;
  void run_query_panel(std::int64_t head, std::int64_t first, const E* state, const Memory& m) const;
  void finish_queries(std::int64_t head, std::int64_t first, const Memory& m) const;
  void run_keys(const Reading& reading, const Memory& m) const;
  void add_near_queries(std::int64_t key_head, std::int64_t chunk, const Memory& m) const;
  void finish_keys(std::int64_t key_head, std::int64_t chunk, bool continues, const Memory& m) const;
  void add_rows(const Rows<E>& to, std::int64_t key_head, std::int64_t first, const E* rows,
                std::int64_t columns, std::int64_t width, bool continues) const;

  const BackwardProblem<E> backward_;
  Sweep<E> sweep_;
  CentreShare<E> centre_share_;
  E *reciprocals_, *of_denominators_;  ///< [heads][queries]: 1 / den, dL/dden
  ThreadMemory memory_;
};

}  // namespace loipe::attention::almost_linear
