// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/backend.h"

namespace loipe {

/// Whether the program has scalar form and is small enough for vector code over examples.
bool runs_as_scalars(const Program& program);

/// The program as straight-line code that is vectorised over examples; null when
/// it does not run as scalars.
std::unique_ptr<Executable> compile_for_batches(const Program& program, const BackendOptions& options);

}  // namespace loipe
