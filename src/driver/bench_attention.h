// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "driver/bench.h"

namespace loipe {

/// Self-attention of n tokens.
struct AttentionSize {
  std::int64_t n, heads, head_size;
};

struct AttentionBenchOptions {
  std::vector<AttentionSize> sizes;
  bool is_causal = true;
  DType dtype = DType::f32;
  int threads = 0;
  std::optional<std::int64_t> repetitions;  ///< absent: as many as 4 s allow, at least 3
};

/// Operations as the literature counts them: 4 n^2 d forward and 10 n^2 d backward for each head, half
/// of it when causal; exponentials are not counted.
struct AttentionBenchRow {
  AttentionSize size{};
  double forward_ms = 0, backward_ms = 0;  ///< medians
  double forward_gflops = 0, backward_gflops = 0;
  double fraction_of_peak = 0;  ///< of both together, of MachineSpeed::fma_gflops
  std::size_t peak_bytes = 0;   ///< with inputs and results
  double max_rel_error = 0;     ///< of sampled rows and columns, see below
  std::int64_t repetitions = 0;
};

struct AttentionBenchResult {
  bool is_causal = true;
  DType dtype = DType::f32;
  int threads = 0;
  Machine machine;
  MachineSpeed speed;
  std::vector<AttentionBenchRow> rows;
};

/// Proves and times exact attention with its gradients on normal random inputs. Before a row
/// is timed, O and dQ of some queries and dK and dV of some keys of each head are computed
/// in f64 by their definition; UserError (check failed) when one deviates by more than 1e-4 (f32)
/// or 1e-10 (f64) of the largest entry.
AttentionBenchResult bench_attention(const AttentionBenchOptions& options, const StageNote& note = {});

}  // namespace loipe
