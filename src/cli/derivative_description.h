// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/json.h"
#include "driver/task_jacobian.h"

namespace loipe::cli {

/// What a derivative takes, gives and costs: orders, counts, bytes.
Json description_json(const TaskJacobian& jacobian, const Subject& subject, const std::string& backend);
std::string description_text(const TaskJacobian& jacobian, const Subject& subject);

}  // namespace loipe::cli
