// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/approximate_attention.h>

#include "ir/program.h"

namespace loipe {

/// The program with further outputs: for each attention that may be approximate, in their order, the report
/// of its VJP where it has one (it holds that of the forward pass), else its own.
Program with_attention_reports(const Program& program);

/// The output of attention_report [heads, columns].
AttentionReport report_of(const Tensor& rows);

}  // namespace loipe
