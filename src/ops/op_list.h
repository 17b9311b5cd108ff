// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"

namespace loipe::ops {

#define LOIPE_OP(name) extern const OpDef op_##name;
#include "ops/op_list.def"
#undef LOIPE_OP

}  // namespace loipe::ops
