// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tasks/task.h"

// The tasks, one file for each field. A new task is one function here and one line
// in the list of task.cc.

namespace loipe::tasks {

Task roe_flux_1d();
Task roe_flux_3d();
Task robot_arm_6dof();
Task human_heart_dipole();
Task propane_combustion();
Task black_scholes_jacobian();
Task random_f();
Task random_g();
Task perceptron();
Task encoder();
Task encoder_decoder();
Task helmholtz();
Task free_energy();
Task kerr_senn();
Task cloud_schemes();
Task simple();
Task lighthouse();
Task hole();

/// Arguments of one shape.
inline std::vector<Argument> arguments_of_shape(const TaskOptions& options, const Shape& shape,
                                                std::initializer_list<const char*> names) {
  std::vector<Argument> arguments;
  for (const char* name : names) arguments.push_back({name, {options.dtype, shape}});
  return arguments;
}

inline std::vector<Argument> scalars(const TaskOptions& options, std::initializer_list<const char*> names) {
  return arguments_of_shape(options, {}, names);
}

}  // namespace loipe::tasks
