// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/backend.h"

namespace loipe {

/// The program as straight-line code that is vectorised over examples, when it has
/// scalar form and is small enough for that; null otherwise.
std::unique_ptr<Executable> compile_for_batches(const Program& program, const BackendOptions& options);

}  // namespace loipe
