// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ir/program.h"

namespace loipe {

/// What the parts of a run cost on one machine, in seconds, measured once. Arrays of more
/// than one element are computed by kernels, single numbers by straight-line code.
struct TimeConstants {
  double launch = 0;    ///< of one kernel
  double product = 0;   ///< of one multiplication or addition in a contraction
  double sum = 0;       ///< of one in an elementwise kernel or reduction
  double byte = 0;      ///< read or written in memory
  double division = 0;  ///< of one element
  double function = 0;  ///< exp, sin, ... of one element
  double scalar = 0;    ///< of one operation on single numbers
  double scalar_division = 0;
  double scalar_function = 0;

  friend bool operator==(const TimeConstants&, const TimeConstants&) = default;
};

/// Predicted time of one run of a program, node by node: single numbers at the price of
/// their operations; arrays at that of the operations or of the bytes that their elements take,
/// whichever is more, and of a kernel. Nodes without operations (reshapes, constants) are views
/// of what is there, but for those that move elements, which cost their bytes.
double predicted_seconds(const Program& program, const TimeConstants& constants);

/// Those of this machine at all its threads in f32: from the cache on disk, else measured now
/// (about two seconds) and stored there.
TimeConstants time_constants_of_this_machine();

/// Runs small programs through the back end and takes their times.
TimeConstants measure_time_constants();

/// The constants as text, and back; nothing for another text.
std::string to_text(const TimeConstants& constants);
std::optional<TimeConstants> time_constants_from_text(const std::string& text);

}  // namespace loipe
