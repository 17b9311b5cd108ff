// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "driver/subject.h"

namespace loipe {

struct ExplainOptions {
  std::string order = "reverse";
  std::vector<std::string> disabled = {};  ///< see CompileOptions
};

/// The names of the stages that can be printed.
const std::vector<std::string>& explain_stages();

/// One stage of compiling the subject's Jacobian, as text; UserError for
/// an unknown stage.
std::string explain_stage(const Subject& subject, const ExplainOptions& options, const std::string& stage);

/// What one pass leaves: the program, or of a pass of the back end what it made. UserError
/// for an unknown one, one that is disabled, and one that does not run for the subject.
std::string explain_pass(const Subject& subject, const ExplainOptions& options, const std::string& pass);

/// The whole flow, one paragraph a stage, with sizes.
std::string explain_summary(const Subject& subject, const ExplainOptions& options);

}  // namespace loipe
