// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/approximate/report.h"
#include "attention/clustered/clustered.h"
#include "attention/exact/arena.h"
#include "attention/statistics/statistics.h"

namespace loipe::attention::approximate {

/// Fills in the errors of one head of keys with its readers: problems have kv_heads = 1.
template <class E>
class Audit {
 public:
  Audit() = default;
  /// For the heads of a problem of any number of heads.
  Audit(const Problem<E>& problem, int threads, Arena& arena);

  /// Sampled rows of O, and the rigorous bounds where there are any.
  void forward(const Problem<E>& head, Rows<const E> o, HeadReport& report, const Parallel& parallel);
  /// Sampled rows of dQ, and columns of dK and dV where the forward pass was exact.
  void backward(const Problem<E>& head, HeadReport& report, const clustered::Saved<E>& saved,
                const Cotangents<E>& cotangents, const InputCotangents<E>& results, const Parallel& parallel);

 private:
  std::span<std::byte> workspace_;
};

}  // namespace loipe::attention::approximate
