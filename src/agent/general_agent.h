// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/agent_file.h"

namespace loipe::agent {

/// The agent that comes with Loipe (data/agents/general.safetensors, part of the library):
/// trained on random graphs only. How is in docs/guides/alphagrad.md.
Agent general_agent();

}  // namespace loipe::agent
