// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"

namespace loipe {

namespace passes {
#define LOIPE_PASS(name, summary) Program name(const Program& program);
#include "passes/pass_list.def"
#undef LOIPE_PASS
}  // namespace passes

namespace {

constexpr Pass kPasses[] = {
#define LOIPE_PASS(name, summary) {#name, summary, &passes::name},
#include "passes/pass_list.def"
#undef LOIPE_PASS
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

}  // namespace loipe
