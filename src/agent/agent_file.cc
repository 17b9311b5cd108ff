// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_file.h"

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "tensor/safetensors.h"

namespace loipe::agent {

namespace {

constexpr const char* kFormat = "loipe-agent-1";
constexpr const char* kFormatFamily = "loipe-agent-";

/// Entries of the metadata, read with messages that name the file.
class MetadataReader {
 public:
  MetadataReader(const std::filesystem::path& path, const Metadata& metadata)
      : name_("'" + path.string() + "'"), metadata_(metadata) {}

  std::string text(const std::string& key) const {
    const auto entry = metadata_.find(key);
    if (entry == metadata_.end())
      throw FileError(name_ + " is no agent: its metadata lack '" + key +
                      "'; expected a file that loipe train wrote");
    return entry->second;
  }

  template <class Number>
  Number number(const std::string& key) const {
    const std::string written = text(key);
    Number value{};
    const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
    if (error != std::errc{} || end != written.data() + written.size())
      throw FileError(name_ + ": metadata '" + key + "' is " + quote(shortened(written)) +
                      ", expected a number; the agent is damaged");
    return value;
  }

 private:
  std::string name_;
  const Metadata& metadata_;
};

Tensor weight_of(const SafetensorsFile& file, const std::filesystem::path& path, const std::string& name,
                 const TensorType& type) {
  const std::string where = "'" + path.string() + "'";
  if (!file.has(name))
    throw FileError(where + " lacks the weight '" + name + "' of its architecture; the agent is damaged");
  if (file.type(name) != type)
    throw FileError(where + ": weight '" + name + "' is " + to_string(file.type(name)) +
                    ", but the architecture of its metadata needs " + to_string(type));
  Tensor tensor = file.tensor(name);
  for (float element : tensor.elements<float>())
    if (!std::isfinite(element))
      throw FileError(where + ": weight '" + name + "' holds what is no number; the agent is damaged");
  return tensor;
}

void check_format(const std::filesystem::path& path, const std::string& format) {
  if (format == kFormat) return;
  if (format.starts_with(kFormatFamily))
    throw Unsupported("'" + path.string() + "' is an agent of format " + shortened(format) +
                      ", of which this version knows only " + kFormat + "; train it again or update Loipe");
  throw FileError("'" + path.string() + "' is no agent: its format is " + quote(shortened(format)) +
                  ", expected " + kFormat);
}

Architecture architecture_of(const std::filesystem::path& path, const MetadataReader& metadata) {
  const std::string reference = metadata.text("reference");
  if (reference != "completion" && reference != "summed costs")
    throw FileError("'" + path.string() + "': metadata 'reference' is " + quote(shortened(reference)) +
                    ", expected completion or summed costs");
  const Architecture architecture{
      metadata.number<std::int64_t>("width"), metadata.number<std::int64_t>("heads"),
      metadata.number<std::int64_t>("layers"), metadata.number<std::int64_t>("hidden"),
      reference == "completion" ? Reference::completion : Reference::summed_costs};
  try {
    check_architecture(architecture);
  } catch (const UserError& error) {
    throw FileError("'" + path.string() + "' names " + error.what());
  }
  const auto features = metadata.number<std::int64_t>("token_features");
  if (features != kTokenFeatures)
    throw Unsupported("'" + path.string() + "' is an agent that sees " + std::to_string(features) +
                      " features of a vertex, but this version has " + std::to_string(kTokenFeatures) +
                      "; train it again");
  return architecture;
}

}  // namespace

std::string hash_of(std::span<const Tensor> weights) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const Tensor& weight : weights)
    for (std::byte byte : weight.bytes())
      hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  std::string text(16, '0');
  for (std::size_t k = 16; k-- > 0; hash >>= 4) text[k] = "0123456789abcdef"[hash & 15];
  return text;
}

void write_agent(const std::filesystem::path& path, const Agent& agent) {
  NamedTensors tensors;
  const std::vector<Argument> names = weight_arguments(agent.architecture);
  for (std::size_t k = 0; k < names.size(); ++k) {
    tensors.emplace_back(names[k].name, agent.weights[k]);
    tensors.emplace_back("adam.first." + names[k].name, agent.adam.first[k]);
    tensors.emplace_back("adam.second." + names[k].name, agent.adam.second[k]);
  }
  const TrainingRecord& record = agent.record;
  const Architecture& a = agent.architecture;
  const Metadata metadata{{"format", kFormat},
                          {"width", std::to_string(a.width)},
                          {"heads", std::to_string(a.heads)},
                          {"layers", std::to_string(a.layers)},
                          {"hidden", std::to_string(a.hidden)},
                          {"token_features", std::to_string(kTokenFeatures)},
                          {"reference", a.reference == Reference::completion ? "completion" : "summed costs"},
                          {"prior", format_double(record.prior)},
                          {"tasks", record.tasks},
                          {"seed", std::to_string(record.seed)},
                          {"rounds", std::to_string(record.rounds)},
                          {"games", std::to_string(record.games)},
                          {"moves", std::to_string(record.moves)},
                          {"simulated_moves", std::to_string(record.simulated_moves)},
                          {"seconds", format_double(record.seconds)},
                          {"reduce", record.reduce ? "1" : "0"},
                          {"steps", std::to_string(agent.adam.steps)},
                          {"command", record.command},
                          {"version", LOIPE_VERSION}};
  write_safetensors(path, tensors, metadata);
}

Agent read_agent(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::read(path);
  const MetadataReader metadata(path, file.metadata());
  check_format(path, metadata.text("format"));
  const Architecture architecture = architecture_of(path, metadata);
  std::vector<Tensor> weights, first, second;
  for (const auto& [name, type] : weight_arguments(architecture)) {
    weights.push_back(weight_of(file, path, name, type));
    // A file that is only to be played with may lack them: they begin again at zero.
    const bool has_moments = file.has("adam.first." + name);
    first.push_back(has_moments ? weight_of(file, path, "adam.first." + name, type) : Tensor(type));
    second.push_back(has_moments ? weight_of(file, path, "adam.second." + name, type) : Tensor(type));
  }
  Agent agent(architecture, std::move(weights));
  agent.adam.first = std::move(first);
  agent.adam.second = std::move(second);
  agent.adam.steps = metadata.number<std::int64_t>("steps");
  agent.record = {metadata.text("tasks"),
                  metadata.number<std::uint64_t>("seed"),
                  metadata.number<std::int64_t>("rounds"),
                  metadata.number<std::int64_t>("games"),
                  metadata.number<std::int64_t>("moves"),
                  metadata.number<std::int64_t>("simulated_moves"),
                  metadata.number<double>("seconds"),
                  metadata.number<int>("reduce") != 0,
                  metadata.number<double>("prior"),
                  metadata.text("command")};
  agent.hash = hash_of(agent.weights);
  return agent;
}

}  // namespace loipe::agent
