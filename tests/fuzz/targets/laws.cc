// SPDX-License-Identifier: Apache-2.0
#include "support/laws.h"

#include "base/check.h"
#include "fuzz/fuzz_target.h"
#include "support/random_program.h"

namespace loipe::testing {

/// The first byte chooses a law, the others are the choices of the random program.
void fuzz_laws(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const Law& law = all_laws()[bytes[0] % all_laws().size()];
  const auto choices = bytes.subspan(1);
  Case c{random_program(choices, {.nodes = 20}), {}};
  c.arguments = random_arguments(c.program, choices.size());
  const std::string report = broken_law_report(law, c, "these bytes");
  require(report.empty(), report);
}

}  // namespace loipe::testing
