// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "driver/task_jacobian.h"

namespace loipe {

/// How blocks are stored: whole, or only the positions that can differ from zero.
enum class JacobianFormat : std::uint8_t { dense, coo, csr };

/// "dense", "coo", "csr"; UserError that suggests the nearest name otherwise.
JacobianFormat parse_jacobian_format(const std::string& text);
std::string to_string(JacobianFormat format);

/// Writes `out.<i>` and the derivatives under their names (DerivativeSignature): the dense
/// tensor, or, for the blocks of a Jacobian or Hessian, .rows/.cols/.values (coo), or
/// .indptr/.indices/.data (csr) over row-major flattened axes: rows are elements of the
/// output, in a Hessian of output and first argument, columns those of the last argument. With a batch the
/// values have a leading axis of examples and share the positions. The shapes are in the metadata, under the
/// block's name.
void write_jacobian(const std::filesystem::path& path, const TaskJacobian& jacobian,
                    std::span<const Tensor> results, const Subject& subject, JacobianFormat format);

}  // namespace loipe
