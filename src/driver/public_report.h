// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/approximate_attention.h>

#include "attention/approximate/report.h"

namespace loipe {

/// One head's report in public words.
AttentionHeadReport public_report(const attention::approximate::HeadReport& report);

}  // namespace loipe
