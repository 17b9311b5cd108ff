// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace loipe::c {

class Block;

/// How the loops of a node read its operands.
enum class Reads : std::uint8_t {
  once,       ///< every element at most once
  repeated,   ///< elements several times
  in_memory,  ///< through a pointer to them
};

/// How a node that is neither elementwise nor movement is written as loops.
struct Nest {
  std::string_view op;
  Reads reads;
  void (*print)(Block& block);
  /// What a user should know of it, for the header; null for nothing.
  std::string (*note)(const CostContext& call) = nullptr;
};

/// The lists of ops: one line for each op that has a nest.
std::span<const Nest> movement_nests();
std::span<const Nest> reduction_nests();
std::span<const Nest> row_nests();
std::span<const Nest> attention_nests();

/// Null for ops without one.
const Nest* find_nest(std::string_view op);

}  // namespace loipe::c
