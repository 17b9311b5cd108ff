// SPDX-License-Identifier: Apache-2.0
#include "driver/objective.h"

#include <loipe/error.h>

#include <algorithm>

#include "base/text.h"

namespace loipe {

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names{"published", "actual", "folded", "time"};
  return names;
}

std::string to_string(Objective objective) { return objective_names()[static_cast<std::size_t>(objective)]; }

Objective parse_objective(const std::string& name, const std::string& where) {
  const std::vector<std::string>& names = objective_names();
  const auto place = std::ranges::find(names, name);
  if (place == names.end())
    throw UserError(where + ": there is no objective '" + shortened(name) + "'" + did_you_mean(name, names) +
                    "; expected one of " + join(names, ", "));
  return static_cast<Objective>(place - names.begin());
}

std::string unit_of(Objective objective) {
  if (objective == Objective::time) return "picoseconds";
  return objective == Objective::folded ? "operations" : "multiplications";
}

}  // namespace loipe
