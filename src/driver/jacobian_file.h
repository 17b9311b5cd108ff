// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "driver/task_jacobian.h"

namespace loipe {

/// How blocks are stored: whole, only the positions that can differ from zero, or as the
/// terms of their structured form.
enum class JacobianFormat : std::uint8_t { dense, coo, csr, structured };

/// "dense", "coo", "csr", "structured"; UserError that suggests the nearest name otherwise.
JacobianFormat parse_jacobian_format(const std::string& text);
std::string to_string(JacobianFormat format);

/// Writes `out.<i>` and the derivatives under their names (DerivativeSignature): the dense
/// tensor, or, for the blocks of a Jacobian or Hessian, .rows/.cols/.values (coo), or
/// .indptr/.indices/.data (csr) over row-major flattened axes: rows are elements of the
/// output, in a Hessian of output and first argument, columns those of the last argument. With a batch the
/// values have a leading axis of examples and share the positions. The shapes are in the metadata, under the
/// block's name. Of a structured block, the tensors are <name>.0, <name>.1, ..., and its
/// metadata says what they mean, "[2,3] by [3]: (a, b | b) a<2, b<3 : #0[a,b]": the terms (see
/// StructuredTerm), one after the other with " + " in between, #k being tensor k. Where
/// examples are run one by one, they have a leading axis of examples, which the text leaves
/// out.
void write_jacobian(const std::filesystem::path& path, const TaskJacobian& jacobian,
                    std::span<const Tensor> results, const Subject& subject, JacobianFormat format);

}  // namespace loipe
