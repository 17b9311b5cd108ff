// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orders/game.h"

namespace loipe::search {

/// Eliminates, at the front, vertices of which it is proved that some optimal order
/// begins with them; returns how many. Why each rule is safe stands beside it.
int eliminate_safe_vertices(Game& game);

}  // namespace loipe::search
