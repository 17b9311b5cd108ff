// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// A permutation of the eliminable vertices by their numbers (1..V), with the name
/// or file that it came from.
struct EliminationOrder {
  std::string name;
  std::vector<int> vertices;
};

/// The numbers of all vertices but pure outputs, ascending. An output that another
/// node uses is eliminable; so are vertices that are dead or depend on no input.
std::vector<int> eliminable_vertices(const Program& program);

/// UserError unless the order is a permutation of the eliminable vertices; the
/// message lists those that are missing, repeated, unknown, or pure outputs.
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
/// or from a JSON file: {"task": ..., "order": [...]} or a bare list. The published
/// orders exist for the ten benchmark functions, at any scale; `task` is the
/// canonical name of the function, empty for other programs. The order is
/// validated. UserError for an unknown name, FileError for an unreadable file; the error
/// lists `other_names` too, those that the caller knows.
EliminationOrder resolve_order(std::string_view name_or_file, const Program& program, std::string_view task,
                               std::span<const std::string> other_names = {});

}  // namespace loipe
