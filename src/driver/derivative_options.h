// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/loipe.h>

#include <string_view>
#include <vector>

#include "driver/derivative.h"

namespace loipe {

/// The options as a request for the program. UserError for names and numbers that it does
/// not have, and for options that the kind does not have.
DerivativeRequest resolve_request(DerivativeKind kind, const Program& primal,
                                  const DerivativeOptions& options, Beside beside);

/// Per input, whether all examples of a batch share it: those that are named, and the
/// tangents of arguments that are.
std::vector<bool> resolve_shared(const Program& primal, const DerivativeSignature& signature,
                                 const DerivativeOptions& options);

/// UserError unless the kind has directions (a second order) where they are given.
void check_directions(DerivativeKind kind, std::int64_t directions);
void check_outer_order(DerivativeKind kind, std::string_view outer_order);

/// The order of a kind where none is given.
const char* default_order(DerivativeKind kind);

/// Outputs that are given, or all; those that are not floating only if they are named.
std::vector<std::size_t> resolve_outputs(const Program& primal, const std::vector<int>& of);

}  // namespace loipe
