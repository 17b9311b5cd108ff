// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include "backends/backend.h"
#include "backends/code_cache.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json.h"
#include "driver/machine.h"
#include "passes/pass.h"

namespace loipe::cli {

namespace {

std::string compiler() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#else
  return std::string("g++ ") + __VERSION__;
#endif
}

Json info_json() {
  const Machine machine = this_machine();
  Json json;
  json["schema"] = kJsonSchema;
  json["version"] = version();
  json["compiler"] = compiler();
  json["cpu"] = machine.cpu;
  json["simd"] = machine.simd;
  json["cores"] = machine.cores;
  json["threads"] = thread_count(0);
  json["backends"] = Json::array();
  for (const Backend* backend : all_backends())
    json["backends"].push_back({{"name", backend->name()}, {"summary", backend->summary()}});
  json["passes"] = Json::array();
  for (const Pass& pass : all_passes())
    json["passes"].push_back({{"name", pass.name}, {"summary", pass.summary}});
  for (const BackendPassInfo& pass : all_backend_passes())
    json["passes"].push_back({{"name", pass.name}, {"summary", pass.summary}});
  json["optional"] = optional_parts();
  const CodeCache cache;
  json["cache"] = {{"folder", cache.is_enabled() ? cache.folder().string() : ""},
                   {"bytes", cache.size()},
                   {"limit", cache.limit()}};
  return json;
}

std::string cache_text() {
  const CodeCache cache;
  if (!cache.is_enabled()) return "none";
  return cache.folder().string() + ", " + with_thousands(static_cast<std::int64_t>(cache.size())) + " of " +
         with_thousands(static_cast<std::int64_t>(cache.limit())) + " bytes";
}

void print_text() {
  const Machine machine = this_machine();
  const std::vector<std::string> parts = optional_parts();
  std::string text = std::string("loipe ") + version() + ", built by " + compiler() + "\n";
  text += "cpu        " + machine.cpu + "\n";
  text += "simd       " + machine.simd + "\n";
  text += "cores      " + std::to_string(machine.cores) + ", threads by default " +
          std::to_string(thread_count(0)) + "\n";
  for (const Backend* backend : all_backends()) {
    std::string name(backend->name());
    name.resize(std::max<std::size_t>(name.size(), 10), ' ');
    text += "back end   " + name + " " + std::string(backend->summary()) + "\n";
  }
  text += "code cache " + cache_text() + "\n";
  text += "optional   " + (parts.empty() ? "none" : join(parts, ", ")) + "\n";
  print(text);
}

Action declare(CLI::App& app, Terminal&) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print JSON");
  return [json] {
    if (*json) print_json(info_json());
    else print_text();
    return 0;
  };
}

}  // namespace

const Command kInfoCommand{"info", "Show version, compiler, machine and back ends",
                           "  loipe info\n  loipe info --json", declare};

}  // namespace loipe::cli
