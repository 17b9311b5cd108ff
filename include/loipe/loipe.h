// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Loipe, a Jacobian compiler: traces tensor programs, chooses an elimination
/// order, and compiles the accumulation of the Jacobian.

#include <loipe/approximate_attention.h>
#include <loipe/attention.h>
#include <loipe/batch.h>
#include <loipe/c_source.h>
#include <loipe/custom_op.h>
#include <loipe/derivative.h>
#include <loipe/derivative_options.h>
#include <loipe/error.h>
#include <loipe/jacobian.h>
#include <loipe/linearization.h>
#include <loipe/sparse_pattern.h>
#include <loipe/structured_block.h>
#include <loipe/tensor.h>
#include <loipe/trace.h>
#include <loipe/transformer.h>

namespace loipe {

/// "0.1.0"
const char* version();

}  // namespace loipe
