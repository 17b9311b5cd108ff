// SPDX-License-Identifier: Apache-2.0
#include "base/strict_json.h"

#include <unordered_set>
#include <vector>

#include "base/text.h"

namespace loipe {

namespace {

using Json = nlohmann::json;

/// Looks at structure alone. A pass of its own, since parsing with a callback takes time that
/// is quadratic in the members of an object.
class Watch final : public nlohmann::json_sax<Json> {
 public:
  explicit Watch(std::size_t deepest) : deepest_(deepest) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return keys_.pop_back(), true; }
  bool end_array() override { return keys_.pop_back(), true; }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second)
      throw JsonFault("repeats the key " + quote(shortened(key)), key, keys_.size());
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error)) throw JsonFault("a number out of range");
    throw JsonFault("malformed JSON at byte " + std::to_string(byte));
  }

 private:
  bool open() {
    keys_.emplace_back();
    if (keys_.size() >= deepest_) throw JsonFault("nested too deeply");
    return true;
  }

  std::size_t deepest_;
  std::vector<std::unordered_set<std::string>> keys_;  ///< of the open objects and arrays
};

}  // namespace

Json parse_strict_json(std::string_view text, std::size_t deepest) {
  Watch watch(deepest);
  Json::sax_parse(text, &watch);
  return Json::parse(text);
}

}  // namespace loipe
