// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace loipe::attention::statistics {

/// Eigenvectors of a symmetric matrix[size][size], which is overwritten, its diagonal becoming the
/// eigenvalues; vectors[i][size] belongs to the i-th. By Jacobi's rotations: O(size^3) for each of about
/// eight sweeps.
void eigenvectors(std::int64_t size, double* matrix, double* vectors);

}  // namespace loipe::attention::statistics
