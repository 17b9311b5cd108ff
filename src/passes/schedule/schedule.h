// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace loipe::passes {

/// Nodes are put in an order in which few bytes are live at once: depth first from the
/// outputs, of the operands of a node the one that needs most memory beyond its own
/// result first (R. Sethi, J. Ullman, Journal of the ACM 17 (1970), which is optimal
/// where no value is used twice).
///
/// Before: a program that verifies.
/// After:  the same nodes, or the program as it was where the new order has no smaller
///         peak_live_bytes. Arguments stay in their order. All values keep their bits.
///         The order depends on the structure of the program alone, not on where its
///         nodes stood, but for nodes that no output needs, which come last.
/// Here:   last: it changes nothing that other passes look at, and they would undo it.
Program schedule(const Program& program);

/// The most bytes of results that have been computed and are still needed, the outputs
/// included, when the nodes are run in program order. Arguments and constants, which are
/// there all the time, do not count.
std::int64_t peak_live_bytes(const Program& program);

}  // namespace loipe::passes
