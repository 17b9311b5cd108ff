// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/approximate_attention.h>

#include <string>
#include <vector>

namespace loipe {

/// The attribute `approximate` of attention ops; empty where all heads are exact. UserError for settings that
/// cannot be.
std::string approximation_text(const std::vector<AttentionApproximation>& approximation);

}  // namespace loipe
