// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/pair_tiles.h"
#include "attention/almost_linear/states.h"

namespace loipe::attention::almost_linear {

/// What the forward pass and the derivatives share: which chunks add to states, in which order, and who reads
/// them (docs/theory/almost_linear.md).
template <class E>
class Sweep {
 public:
  /// What a thread has of keys.
  struct KeyMemory {
    E* panels;  ///< of one chunk, which queries of the same chunk see pair by pair
    E* near;    ///< a panel of another chunk
    E* scratch;
    typename FeatureMaps<E>::Operand* operands;  ///< [panels]
    typename FeatureMaps<E>::Memory features;
  };

  Sweep(const Problem<E>& problem, const Approximation& approximation, int feature_degree, bool has_values,
        Arena& arena)
      : geometry(problem, approximation, feature_degree, arena),
        centres(geometry, arena),
        packing(geometry, centres, arena),
        features(geometry),
        pairs(geometry, arena),
        states(geometry, has_values, arena) {}
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  void prepare(const Parallel& parallel) {
    geometry.table.fill();
    packing.fill();
    pairs.fill();
    states.fill();
    centres.compute(parallel);
  }

  KeyMemory take_keys(Arena& arena) const {
    KeyMemory m{};
    m.panels = packing.take_keys(geometry.panels, arena);
    m.near = packing.take_keys(1, arena);
    m.scratch = packing.take_scratch(arena);
    m.operands = arena.take<typename FeatureMaps<E>::Operand>(geometry.panels);
    m.features = features.take(arena);
    return m;
  }

  void load_keys_of_chunk(std::int64_t key_head, std::int64_t chunk, const KeyMemory& m) const {
    for (std::int64_t panel = 0; panel < geometry.panels; ++panel)
      packing.load_keys(key_head, chunk * geometry.chunk + panel * geometry.lanes,
                        packing.keys_at(m.panels, panel), m.scratch);
  }

  /// A chunk to add to a state. Is_loaded: it has just been read on this thread, and its panels are still in
  /// the thread's memory.
  struct Addition {
    std::int64_t key_head, chunk;
    StateSum<E> to;
    bool is_loaded;
  };

  /// A chunk to read, and the state of what lies before it.
  struct Reading {
    std::int64_t key_head, chunk;
    bool has_state;
    typename States<E>::View before;
  };

  /// state (+)= sum over the chunk's keys of F (v, 1).
  void add_keys(const Addition& a, const KeyMemory& m) const {
    if (!a.is_loaded) load_keys_of_chunk(a.key_head, a.chunk, m);
    for (std::int64_t panel = 0; panel < geometry.panels; ++panel) {
      const KeyPanel<E> keys = packing.keys_at(m.panels, panel);
      const E* const admitted = keys.admitted(geometry.value_size, geometry.lanes);
      m.operands[panel] = {keys.x, admitted, keys.blocks, admitted};
    }
    features.add_to_state(m.operands, geometry.panels, a.to, m.features);
  }

  /// Add(addition, thread) for all chunks of keys whose state is read, and read(reading, thread) for all
  /// chunks of queries.
  template <class Add, class Read>
  void over_queries(const Parallel& parallel, Add&& add, Read&& read) {
    const Cut cut{geometry.key_chunks, geometry.query_chunks, false, 1};
    run(parallel, cut, add, read);
  }
  /// The same with keys and queries exchanged: causal states are of later queries.
  template <class Add, class Read>
  void over_keys(const Parallel& parallel, Add&& add, Read&& read) {
    const Cut cut{geometry.query_chunks, geometry.key_chunks, true, geometry.problem.shape.readers()};
    run(parallel, cut, add, read);
  }

  /// Body(tile, keys, panel of the own chunk or -1) for the panels of keys that the panel of queries from
  /// `first` on sees pair by pair; those of its own chunk are loaded already.
  template <class Body>
  void for_each_key_panel(std::int64_t key_head, std::int64_t first, const KeyMemory& m, Body&& body) const {
    const std::int64_t lanes = geometry.lanes, begin = first / geometry.chunk * geometry.chunk,
                       keys = geometry.problem.shape.keys, window = geometry.approximation.window;
    if (geometry.is_causal())
      for (std::int64_t key = begin; key <= first && key < keys; key += lanes)
        body({key_head, first - key, false}, packing.keys_at(m.panels, (key - begin) / lanes),
             (key - begin) / lanes);
    if (window <= 0) return;
    const std::int64_t reach = std::min(window, geometry.problem.shape.queries + keys) - 1;
    const std::int64_t low = std::max<std::int64_t>(first - reach, 0) / lanes * lanes;
    const std::int64_t high = std::min(geometry.is_causal() ? begin : first + lanes + reach, keys);
    for (std::int64_t key = low; key < high; key += lanes) {
      const KeyPanel<E> near = packing.keys_at(m.near, 0);
      packing.load_keys(key_head, key, near, m.scratch);
      body({key_head, first - key, true}, near, std::int64_t{-1});
    }
  }

  Geometry<E> geometry;
  Centres<E> centres;
  PanelPacking<E> packing;
  FeatureMaps<E> features;
  PairTiles<E> pairs;
  States<E> states;

 private:
  /// How many chunks add to states and how many read them; if reversed, from the last to the first. A chunk
  /// adds as many parts one by one.
  struct Cut {
    std::int64_t adding, reading;
    bool is_reversed;
    std::int64_t parts;
  };
  template <class Add, class Read>
  void run(const Parallel& parallel, const Cut& cut, Add&& add, Read&& read) {
    const std::int64_t kv_heads = geometry.problem.shape.kv_heads;
    for (std::int64_t head = 0; head < kv_heads; head += states.group()) {
      const std::int64_t heads = std::min(states.group(), kv_heads - head);
      states.clear(heads);
      if (!geometry.is_causal()) run_totals(parallel, cut, head, heads, add, read);
      else if (fills(heads, parallel.threads)) run_heads(parallel, cut, head, heads, add, read);
      else run_waves(parallel, cut, head, heads, add, read);
    }
  }

  /// Whether threads that each take whole heads are busy for most of the time.
  static bool fills(std::int64_t heads, std::int64_t threads) {
    return heads * 8 >= divide_up(heads, threads) * threads * 7;
  }

  /// Causal, a head at a time from one end to the other: the state stays in the cache, and a chunk is loaded
  /// once to be read and added. The sums, and so the bits, are those of waves.
  template <class Add, class Read>
  void run_heads(const Parallel& parallel, const Cut& cut, std::int64_t head, std::int64_t heads, Add& add,
                 Read& read) {
    const std::int64_t chunks = cut.is_reversed ? std::max(cut.reading, cut.adding) : cut.reading;
    for_each(parallel, heads, [&](std::int64_t h, int thread) {
      for (std::int64_t step = 0; step < chunks; ++step) {
        const std::int64_t chunk = cut.is_reversed ? chunks - 1 - step : step;
        const bool is_read = chunk < cut.reading, is_added = chunk < cut.adding && step + 1 < chunks;
        const bool has_state = cut.is_reversed ? chunk + 1 < cut.adding : chunk > 0 && cut.adding > 0;
        if (is_read) read(Reading{head + h, chunk, has_state, states.running(h)}, thread);
        if (!is_added) continue;
        states.add_chunk(head + h, h, cut.parts, [&](const StateSum<E>& to) {
          add(Addition{head + h, chunk, to, is_read && !cut.is_reversed}, thread);
        });
      }
    });
  }

  /// Causal, all threads on a few neighbouring chunks of each head: chunks of keys that lie before, or chunks
  /// of queries that lie behind.
  template <class Add, class Read>
  void run_waves(const Parallel& parallel, const Cut& cut, std::int64_t head, std::int64_t heads, Add& add,
                 Read& read) {
    // The first chunk of all to read has no state, so the last need not add to one.
    const std::int64_t first_adding = cut.is_reversed ? 1 : 0;
    const std::int64_t end_adding = cut.is_reversed ? cut.adding : std::min(cut.adding, cut.reading - 1);
    const std::int64_t chunks = cut.is_reversed ? std::max(cut.reading, cut.adding) : cut.reading;
    const std::int64_t waves = divide_up(chunks, states.wave());
    for (std::int64_t step = 0; step < waves; ++step) {
      const std::int64_t begin = (cut.is_reversed ? waves - 1 - step : step) * states.wave();
      const std::int64_t end = std::min(begin + states.wave(), chunks);
      const std::int64_t first = std::clamp(first_adding, begin, end),
                         last = std::clamp(end_adding, first, end);
      for_each(parallel, heads * (last - first), [&](std::int64_t task, int thread) {
        const std::int64_t h = task % heads, chunk = first + task / heads;
        add(Addition{head + h, chunk, {states.slot(h, chunk - begin), false, nullptr}, false}, thread);
      });
      states.scan(parallel, {head, heads, first - begin, last - begin, end - begin, cut.is_reversed});
      const std::int64_t readers = std::clamp(cut.reading, begin, end) - begin;
      for_each(parallel, heads * readers, [&](std::int64_t task, int thread) {
        const std::int64_t h = task % heads, chunk = begin + task / heads;
        const bool has_state = cut.is_reversed ? chunk + 1 < cut.adding : chunk > 0 && cut.adding > 0;
        read(Reading{head + h, chunk, has_state, states.before(h, chunk - begin)}, thread);
      });
    }
  }

  /// Not causal: one state for all; it is the sum of those of equal shares of the chunks.
  template <class Add, class Read>
  void run_totals(const Parallel& parallel, const Cut& cut, std::int64_t head, std::int64_t heads, Add& add,
                  Read& read) {
    const std::int64_t shares = std::min(states.wave(), cut.adding);
    for_each(parallel, heads * shares, [&](std::int64_t task, int thread) {
      const std::int64_t h = task % heads, share = task / heads;
      const std::int64_t begin = share * cut.adding / shares, end = (share + 1) * cut.adding / shares;
      for (std::int64_t chunk = begin; chunk < end; ++chunk)
        add(Addition{head + h, chunk, {states.slot(h, share), chunk > begin, nullptr}, false}, thread);
    });
    states.total(parallel, {head, heads, 0, shares, 1, false});
    for_each(parallel, heads * cut.reading, [&](std::int64_t task, int thread) {
      const std::int64_t h = task % heads;
      read(Reading{head + h, task / heads, cut.adding > 0, states.running(h)}, thread);
    });
  }
};

}  // namespace loipe::attention::almost_linear
