// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/case.h"

namespace loipe::testing {

/// A smallest case that some property still fails on.
struct Shrunk {
  Case smallest;
  std::string violation;
  int trials = 0;  ///< cases that the property was asked about
};

/// Shrinks a case as long as the property fails on it, greedily: of all variants of a
/// case the first smaller one that fails is taken, until none does. Variants have
///  * fewer outputs, an inner value as the only output, or an operand in place of an output;
///  * a node replaced by an earlier value of its type, or by a new argument that holds
///    the value which the node has: all that led to it is then gone, or an output;
///  * axes of extent 1, 2, or one less, in arguments, constants and attributes alike;
///  * arguments and constants of zeros, of ones, or of numbers with fewer digits.
/// Smaller means: fewer nodes, else fewer arguments and constants, else fewer outputs,
/// else a shorter text. A variant that the builder refuses is no case.
Shrunk shrink(const Case& failing, const Property& property, int most_trials = 5000);

}  // namespace loipe::testing
