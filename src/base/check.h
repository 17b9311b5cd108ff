// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/error.h>

#include <string>

namespace loipe {

/// States an invariant of Loipe itself; kept in every build type.
inline void require(bool holds, const char* message) {
  if (!holds) throw InternalError(message);
}
inline void require(bool holds, const std::string& message) {
  if (!holds) throw InternalError(message);
}

}  // namespace loipe
