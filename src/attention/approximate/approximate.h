// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "attention/approximate/report.h"
#include "attention/approximate/settings.h"
#include "attention/exact/attention.h"
#include "attention/problem.h"

// Attention and its VJP where an error may be traded for time. For each head of keys a plan is made from
// what is measured of the logits (attention/planner), carried out, and audited on sampled rows and columns
// (attention/certificate); where method `automatic` misses its tolerance, it goes on with a dearer plan,
// exact attention at last. All of it is a function of the inputs: the same bits for every number of threads.
// Windows of the mask and biases are exact, as is everything where exact attention is cheaper.
//
// E is float or double; settings are one for each head of keys.

namespace loipe::attention::approximate {

template <class E>
struct Results {
  Rows<E> o;                      ///< [heads, queries, value_size]
  Rows<E> lse;                    ///< [heads, queries, 1]; must be there
  Rows<E> statistics;             ///< [heads, queries, kStatistics], for `vjp`; may be absent
  std::span<HeadReport> reports;  ///< [kv_heads]; may be empty
};

/// Bytes of workspace, memory of any content, aligned to 64 bytes; linear in queries and keys.
template <class E>
std::size_t forward_workspace(const Problem<E>& problem, std::span<const Settings> settings, int threads);
template <class E>
void forward(const Problem<E>& problem, std::span<const Settings> settings, const Results<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace);

/// The planner's choices alone: reports without measured errors. Workspace as for `forward`.
template <class E>
void plan(const Problem<E>& problem, std::span<const Settings> settings, std::span<HeadReport> reports,
          const Parallel& parallel, std::span<std::byte> workspace);

/// What `forward` has left. Where reports are empty, `vjp` begins with `forward`.
template <class E>
struct Saved {
  Rows<const E> o, lse, statistics;
  std::span<const HeadReport> reports;
};

/// By q, k and v; all three must be there, and no bias. `reports` are those of `forward`, with the backward
/// pass added.
template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, std::span<const Settings> settings, int threads);
template <class E>
void vjp(const Problem<E>& problem, std::span<const Settings> settings, const Saved<E>& saved,
         const Cotangents<E>& cotangents, const InputCotangents<E>& results, std::span<HeadReport> reports,
         const Parallel& parallel, std::span<std::byte> workspace);

}  // namespace loipe::attention::approximate
