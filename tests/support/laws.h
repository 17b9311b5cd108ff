// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "support/case.h"

namespace loipe::testing {

/// Something that holds for every program and every input.
struct Law {
  std::string_view name;
  std::string (*violation)(const Case&);  ///< see Property
};

/// The laws that random programs are tried on, by tests and by the fuzzer.
std::span<const Law> all_laws();

/// The law, but cases where it need not hold pass: where a change of the inputs by 1e-9
/// changes values or derivatives by much more, a kink, a tie or a cancellation is near,
/// and two right evaluations may fall on either side of it.
std::string violation_at_regular_point(const Law& law, const Case& c);

/// "" or a report on a case that breaks the law: the smallest such case that shrinking
/// finds, with its inputs, after `origin`, which says where the case came from.
std::string broken_law_report(const Law& law, const Case& c, const std::string& origin);

}  // namespace loipe::testing
