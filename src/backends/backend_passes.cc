// SPDX-License-Identifier: Apache-2.0
#include "backends/backend_passes.h"

#include <loipe/error.h>

#include <algorithm>

#include "base/text.h"

namespace loipe {

namespace {

constexpr BackendPassInfo kPasses[] = {
#define LOIPE_BACKEND_PASS(name, summary, from, to) {#name, summary, from, to},
#include "backends/backend_passes.def"
#undef LOIPE_BACKEND_PASS
};

}  // namespace

std::span<const BackendPassInfo> all_backend_passes() { return kPasses; }

DisabledPasses::DisabledPasses(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto pass = std::ranges::find(kPasses, name, &BackendPassInfo::name);
    if (pass == std::end(kPasses)) {
      std::vector<std::string> known;
      for (const BackendPassInfo& info : kPasses) known.emplace_back(info.name);
      throw UserError("there is no pass '" + shortened(name) + "' of back ends to disable" +
                      did_you_mean(name, known) + "; the passes are " + join(known, ", "));
    }
    set_.set(static_cast<std::size_t>(pass - std::begin(kPasses)));
  }
}

}  // namespace loipe
