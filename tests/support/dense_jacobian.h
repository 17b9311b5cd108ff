// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"

namespace loipe::testing {

/// An oracle that shares nothing with elimination: every local Jacobian is
/// evaluated as a dense matrix and multiplied by the chain rule in forward order.
/// Blocks d(out i)/d(argument k), row-major over (i, k), as flat row-major matrices.
std::vector<Tensor> dense_jacobian(const Program& program, const std::vector<Tensor>& arguments,
                                   const std::vector<std::size_t>& wrt);

/// The largest absolute difference over the largest entry of the reference, which
/// is at least `floor`; infinite when shapes or the places of NaN differ.
double relative_deviation(const Tensor& value, const Tensor& reference, double floor = 1e-300);

}  // namespace loipe::testing
