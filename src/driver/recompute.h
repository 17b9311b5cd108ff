// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "driver/pipeline.h"

namespace loipe {

/// Compiles the optimised program; where that needs more memory than there may be, with values that are
/// computed again rather than kept (passes/recomputation), and the compilation's program becomes the one
/// that does. MemoryLimitExceeded, with the least bytes that any choice needs, where none fits.
std::unique_ptr<Executable> compile_recomputing(Compilation& compilation, const Backend& backend,
                                                const BackendOptions& options);

}  // namespace loipe
