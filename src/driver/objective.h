// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loipe {

/// The cost that search lowers:
///   published  multiplications by the counting rule of the AlphaGrad papers
///   actual     multiplications that elimination records
///   folded     multiplications, divisions and additions that are executed beyond the function
///              itself, after all passes
///   time       predicted picoseconds of one run
enum class Objective : std::uint8_t { published, actual, folded, time };

std::string to_string(Objective objective);
/// In the order of the enumeration.
const std::vector<std::string>& objective_names();
/// UserError that names the nearest and starts with what was being read.
Objective parse_objective(const std::string& name, const std::string& where);
/// What a cost counts: "multiplications", "operations" or "picoseconds".
std::string unit_of(Objective objective);

}  // namespace loipe
