// SPDX-License-Identifier: Apache-2.0
#include "base/strict_json.h"

#include <set>
#include <vector>

#include "base/text.h"

namespace loipe {

nlohmann::json parse_strict_json(std::string_view text, std::size_t deepest) {
  using Json = nlohmann::json;
  std::vector<std::set<std::string>> keys(deepest + 1);  // of the open objects, by depth
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (level >= deepest) throw JsonFault("nested too deeply");
    if (event == Json::parse_event_t::object_start) keys[level + 1].clear();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys[level].insert(key).second)
        throw JsonFault("repeats the key " + quote(shortened(key)), key, level);
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    throw JsonFault("malformed JSON at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    throw JsonFault("a number out of range");
  }
}

}  // namespace loipe
