// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace loipe::testing {

/// A program and inputs for it: what a law is tried on.
struct Case {
  Program program;
  std::vector<Tensor> arguments;
};

/// The text of the program, then one line for each input.
std::string to_string(const Case& c);

/// What is wrong with a case, "" if nothing is.
using Property = std::function<std::string(const Case&)>;

/// The same for properties that throw: an exception is something wrong, too.
std::string violation_of(const Property& property, const Case& c);

}  // namespace loipe::testing
