// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace loipe {

/// The fast back end for CPUs: compiles a program to a list of steps over one
/// planned arena, each step a loop nest around vector kernels of the running CPU.
const Backend& cpu_backend();

}  // namespace loipe
