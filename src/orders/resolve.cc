// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "base/printable.h"
#include "base/strict_json.h"
#include "base/text.h"
#include "orders/moves.h"
#include "orders/order.h"
#include "orders/published_orders.h"

namespace loipe {

namespace {

const std::vector<std::string> kNames{"forward", "reverse", "markowitz", "markowitz-published", "alphagrad"};

EliminationOrder published_order_of(std::string_view name, std::string_view task) {
  EliminationOrder order{std::string(name), published_order(task, name)};
  if (order.vertices.empty())
    throw UserError("there is no published order '" + std::string(name) + "' for '" +
                    (task.empty() ? "this program" : std::string(task)) +
                    "': it exists for the ten benchmark functions; try forward, reverse or markowitz");
  return order;
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw FileError(printable("order file '" + path + "'" + what));
}

nlohmann::json parse_json(const std::string& path) {
  constexpr std::size_t kDeepest = 16;
  try {
    return parse_strict_json(read_text_file(path), kDeepest);
  } catch (const JsonFault& fault) {
    fail(path, std::string(" is not valid JSON: ") + fault.what());
  }
}

std::vector<int> read_vertices(const nlohmann::json& list, const std::string& path) {
  if (!list.is_array()) fail(path, ": expected a list of vertex numbers, or an object with \"order\"");
  std::vector<int> vertices;
  for (const nlohmann::json& entry : list) {
    if (!entry.is_number_integer() || entry < -1'000'000'000 || entry > 1'000'000'000)
      fail(path, ": entry " + std::to_string(vertices.size() + 1) + " of the order is not a vertex number");
    vertices.push_back(entry.get<int>());
  }
  return vertices;
}

EliminationOrder read_moves(const nlohmann::json& content, const Program& program, const std::string& path) {
  if (content.contains("order")) fail(path, " has both \"order\" and \"moves\": expected one of the two");
  EliminationOrder order{path, {}};
  try {
    order.moves = moves_from_json(content["moves"], program);
  } catch (const UserError& error) {
    fail(path, std::string(": ") + error.what());
  }
  return order;
}

EliminationOrder from_file(const std::string& path, const Program& program, std::string_view task) {
  const nlohmann::json content = parse_json(path);
  if (!content.is_object()) return {path, read_vertices(content, path)};
  if (content.contains("task") && !task.empty()) {
    const nlohmann::json& named = content["task"];
    if (!named.is_string() || named.get<std::string>() != task)
      throw UserError(printable("order file '" + path + "' is for task " + shortened(named.dump()) +
                                ", not for '" + std::string(task) + "'"));
  }
  if (content.contains("moves")) return read_moves(content, program, path);
  if (!content.contains("order")) fail(path, " has no \"order\" and no \"moves\"");
  return {path, read_vertices(content["order"], path)};
}

constexpr std::string_view kRandomPrefix = "random:";

EliminationOrder random_order_of(const std::string& name, const Program& program) {
  const std::string_view seed_text = std::string_view(name).substr(kRandomPrefix.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(seed_text.data(), seed_text.data() + seed_text.size(), seed);
  if (error != std::errc{} || end != seed_text.data() + seed_text.size())
    throw UserError("order '" + name + "': expected random:SEED with a seed of 0 or more");
  return random_order(program, seed);
}

[[noreturn]] void refuse(const std::string& order, std::span<const std::string> other_names) {
  std::vector<std::string> names(std::begin(kNames), std::end(kNames));
  names.insert(names.end(), other_names.begin(), other_names.end());
  names.emplace_back("random:SEED");
  throw UserError("unknown order '" + shortened(order) + "'" + did_you_mean(order, names) + ": expected " +
                  join(names, ", ") + ", or a JSON file");
}

}  // namespace

std::span<const std::string> order_names() { return kNames; }

EliminationOrder resolve_order(std::string_view name_or_file, const Program& program, std::string_view task,
                               std::span<const std::string> other_names) {
  const std::string text(name_or_file);
  EliminationOrder order;
  if (text == "forward") order = forward_order(program);
  else if (text == "reverse") order = reverse_order(program);
  else if (text == "markowitz") order = markowitz_order(program);
  else if (text.starts_with(kRandomPrefix)) order = random_order_of(text, program);
  else if (text == "markowitz-published" || text == "alphagrad") order = published_order_of(text, task);
  else if (text.find('/') != std::string::npos || text.ends_with(".json") || std::filesystem::exists(text))
    order = from_file(text, program, task);
  else refuse(text, other_names);
  validate_order(program, order);
  return order;
}

}  // namespace loipe
