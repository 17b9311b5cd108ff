// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "agent/network.h"
#include "agent/optimizer.h"

namespace loipe::agent {

/// What made an agent, as its file tells; the numbers of a training that goes on add up.
struct TrainingRecord {
  std::string tasks = "random";
  std::uint64_t seed = 0;
  std::int64_t rounds = 0, games = 0, moves = 0, simulated_moves = 0;
  double seconds = 0;
  bool reduce = true;
  double prior = 0;
  std::string command;
};

/// A trained network, and what training goes on from.
struct Agent {
  Architecture architecture;
  std::vector<Tensor> weights;
  Adam adam;
  TrainingRecord record;
  std::string hash;  ///< of the weights, 16 hexadecimal digits; set by the functions below

  Agent(const Architecture& a, std::vector<Tensor> w)
      : architecture(a), weights(std::move(w)), adam(weights) {}
};

/// FNV-1a, 64 bits, of the weights.
std::string hash_of(std::span<const Tensor> weights);

/// A safetensors file, all or nothing: the weights by name, the moments of Adam as
/// "adam.first.NAME" and "adam.second.NAME", and metadata.
void write_agent(const std::filesystem::path& path, const Agent& agent);

/// FileError for a file that is no agent, is damaged, or whose weights do not fit the
/// architecture that it names; Unsupported for one of a later format.
Agent read_agent(const std::filesystem::path& path);

}  // namespace loipe::agent
