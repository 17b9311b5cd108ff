// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ir/program.h"

namespace loipe::testing {

struct RandomProgramOptions {
  int arguments = 2;
  int nodes = 12;
  /// Every value that no node uses becomes an output; otherwise one or two of them.
  bool all_sinks_are_outputs = false;
  DType dtype = DType::f64;
};

/// A valid program of random ops: elementwise, max-reduce, transpose, reshape,
/// strided slice, concatenate, pad, gather with repeats, select, broadcast,
/// diagonal, einsums, masked einsums; extents 1 to 4, ranks 0 to 3. The same for
/// the same seed.
Program random_program(std::uint64_t seed, const RandomProgramOptions& options = {});
/// The same with every choice read from bytes, and no more nodes than they reach for.
Program random_program(std::span<const std::uint8_t> bytes, const RandomProgramOptions& options = {});

/// Arguments for it, in (0.2, 1.2) with random signs.
std::vector<Tensor> random_arguments(const Program& program, std::uint64_t seed);

}  // namespace loipe::testing
