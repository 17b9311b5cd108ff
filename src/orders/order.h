// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// One step of edge elimination (Naumann 2004), which adds to vertex elimination, j:
///   front i j: c_ki += c_kj * c_ji for all successors k of j; the edge i -> j is removed
///   back j k:  c_ki += c_kj * c_ji for all predecessors i of j; the edge j -> k is removed
/// Nodes are vertices by their numbers, from 1, and arguments by minus their positions; j is a
/// vertex that is not a pure output.
struct EliminationMove {
  enum class Kind : std::uint8_t { vertex, front, back };
  Kind kind = Kind::vertex;
  int first = 0;   ///< j, i, j
  int second = 0;  ///< -, j, k

  int eliminated() const { return kind == Kind::front ? second : first; }  ///< j
  friend bool operator==(const EliminationMove&, const EliminationMove&) = default;
};

/// A permutation of the eliminable vertices by their numbers (1..V), with the name
/// or file that it came from; or moves that leave no vertex between two edges.
struct EliminationOrder {
  std::string name;
  std::vector<int> vertices;
  std::vector<EliminationMove> moves = {};  ///< if there are any, `vertices` is empty

  bool has_moves() const { return !moves.empty(); }
};

/// The numbers of all vertices but pure outputs, ascending. An output that another
/// node uses is eliminable; so are vertices that are dead or depend on no input.
std::vector<int> eliminable_vertices(const Program& program);

/// UserError unless the order is a permutation of the eliminable vertices; the
/// message lists those that are missing, repeated, unknown, or pure outputs. Moves must each
/// find their vertex or edge among the dependences of the program; the message names the first
/// that does not. Whether they leave nothing to eliminate is seen where they are played.
void validate_order(const Program& program, const EliminationOrder& order);

EliminationOrder forward_order(const Program& program);
EliminationOrder reverse_order(const Program& program);
/// Minimal Markowitz degree on this very graph: the published degree and tie rule
/// where the published rule applies (rank at most 2), else in-degree * out-degree.
EliminationOrder markowitz_order(const Program& program);
/// An order drawn uniformly; the same for the same seed.
EliminationOrder random_order(const Program& program, std::uint64_t seed);

/// The names that `named_order` knows.
std::span<const std::string> order_names();

/// An order by name (forward, reverse, markowitz, markowitz-published, alphagrad)
/// or from a JSON file: {"task": ..., "order": [...]}, a bare list, or moves:
/// {"task": ..., "moves": [["vertex", j], ["front", i, j], ["back", j, k]]}, where vertices
/// are numbers and arguments go by name. The published
/// orders exist for the ten benchmark functions, at any scale; `task` is the
/// canonical name of the function, empty for other programs. The order is
/// validated. UserError for an unknown name, FileError for an unreadable file; the error
/// lists `other_names` too, those that the caller knows.
EliminationOrder resolve_order(std::string_view name_or_file, const Program& program, std::string_view task,
                               std::span<const std::string> other_names = {});

}  // namespace loipe
