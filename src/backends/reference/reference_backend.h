// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace loipe {

/// The interpreter as a back end: the oracle of every test. One thread, and it
/// allocates as it goes.
const Backend& reference_backend();

}  // namespace loipe
