// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "driver/subject.h"

namespace loipe {

/// The names of the stages that can be printed.
const std::vector<std::string>& explain_stages();

/// One stage of compiling the subject's Jacobian in that order, as text; UserError for
/// an unknown stage.
std::string explain_stage(const Subject& subject, const std::string& order, const std::string& stage);

/// The whole flow, one paragraph a stage, with sizes.
std::string explain_summary(const Subject& subject, const std::string& order);

}  // namespace loipe
