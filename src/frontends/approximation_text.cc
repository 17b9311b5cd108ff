// SPDX-License-Identifier: Apache-2.0
#include "frontends/approximation_text.h"

#include <loipe/error.h>

#include "attention/approximate/settings.h"
#include "base/text.h"

namespace loipe {

namespace {

void expect_known(std::string_view what, int value, int count) {
  if (value < 0 || value >= count)
    throw UserError("attention: approximation, " + std::string(what) + " is number " + std::to_string(value) +
                    " of its enumeration, which has " + std::to_string(count));
}

attention::approximate::Settings settings_of(const AttentionApproximation& a) {
  expect_known("method", static_cast<int>(a.method), 4);
  expect_known("coefficients", static_cast<int>(a.coefficients), 4);
  namespace approximate = attention::approximate;
  approximate::Settings settings{.method = static_cast<approximate::Method>(a.method),
                                 .tolerance = a.tolerance,
                                 .degree = a.degree,
                                 .coefficients = static_cast<approximate::CoefficientKind>(a.coefficients),
                                 .near = a.near,
                                 .clusters = a.clusters,
                                 .exact_keys = a.exact_keys,
                                 .is_forward_clustered = a.is_forward_clustered,
                                 .has_paper_gradient = a.has_paper_gradient,
                                 .memory = a.memory,
                                 .is_audited = a.is_audited};
  approximate::check_settings("attention: approximation, ", settings);
  return settings;
}

}  // namespace

std::string approximation_text(const std::vector<AttentionApproximation>& approximation) {
  std::vector<std::string> heads;
  bool is_exact = true;
  for (const AttentionApproximation& head : approximation) {
    is_exact = is_exact && head.method == AttentionMethod::exact;
    heads.push_back(to_text(settings_of(head)));
  }
  return is_exact ? "" : join(heads, ";");
}

}  // namespace loipe
