// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "ir/program.h"

namespace loipe {

/// A rewrite of a program into one of the same meaning: the same arguments in name
/// and order, the same outputs in type and order. Each pass is linear in nodes and
/// idempotent; its header says what else holds, and what the same meaning allows.
/// A new pass is one folder and one line in pass_list.def.
struct Pass {
  std::string_view name;
  std::string_view summary;
  Program (*run)(const Program&);
};

/// In the order in which they run.
std::span<const Pass> all_passes();

}  // namespace loipe
