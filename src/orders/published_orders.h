// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace loipe {

/// The published order of that name (alphagrad, markowitz-published) for one of the
/// ten benchmark functions; empty when there is none.
std::vector<int> published_order(std::string_view task, std::string_view name);

}  // namespace loipe
