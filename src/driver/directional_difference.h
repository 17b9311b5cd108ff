// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// Values of all outputs.
using TensorFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// The derivative of f at `point` along `direction` (tensors in f64, others pass
/// unchanged) by central differences, extrapolated to step 0 by Neville's scheme; per
/// element the extrapolation with the smallest change is taken (C. Ridders, "Accurate
/// computation of F'(x) and F'(x) F''(x)", 1982). Steps start at `first_step` times the
/// direction.
std::vector<Tensor> directional_difference(const TensorFunction& f, std::span<const Tensor> point,
                                           std::span<const Tensor> direction, double first_step);

/// The program with every stop_gradient result fixed at its value for these arguments,
/// so that differences see what derivatives see.
Program with_stopped_values(const Program& program, std::span<const Tensor> arguments);

}  // namespace loipe
