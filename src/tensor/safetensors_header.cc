// SPDX-License-Identifier: Apache-2.0
#include "tensor/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/strict_json.h"
#include "base/text.h"

namespace loipe {

namespace {

using Json = nlohmann::json;

struct FormatDType {
  std::string_view name;
  std::uint64_t bytes;  ///< of one element
};
constexpr FormatDType kFormatDTypes[] = {
    {"F64", 8},  {"I64", 8}, {"U64", 8}, {"C64", 8}, {"F32", 4}, {"I32", 4},  {"U32", 4},     {"F16", 2},
    {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E5M2", 1}, {"F8_E4M3", 1}};

class HeaderParser {
 public:
  HeaderParser(std::uint64_t data_size, const std::string& name) : data_size_(data_size), name_(name) {}

  SafetensorsHeader parse(std::string_view text) {
    const Json json = parse_json(text);
    if (!json.is_object()) fail("its header is not a JSON object");
    for (const auto& [key, value] : json.items()) {
      if (key == "__metadata__") add_metadata(value);
      else add_entry(key, value);
    }
    check_coverage();
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(printable("file " + name_ + " is not a valid safetensors file: " + what));
  }
  [[noreturn]] void fail(std::string_view tensor, const std::string& what) const {
    fail("tensor " + quote(shortened(tensor)) + " " + what);
  }

  Json parse_json(std::string_view text) const {
    constexpr std::size_t kDeepest = 8;
    try {
      return parse_strict_json(text, kDeepest);
    } catch (const JsonFault& fault) {
      if (fault.depth == 1) fail("it holds two tensors named " + quote(shortened(fault.repeated_key)));
      fail(std::string("its header is not accepted: ") + fault.what());
    }
  }

  void add_metadata(const Json& json) {
    if (!json.is_object()) fail("'__metadata__' is not a JSON object");
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) fail("the metadata " + quote(shortened(key)) + " is not a text");
      header_.metadata.emplace(key, value.get<std::string>());
    }
  }

  void add_entry(const std::string& tensor, const Json& json) {
    if (!json.is_object()) fail(tensor, "is not described by a JSON object");
    const auto dtype = json.find("dtype");
    if (dtype == json.end() || !dtype->is_string()) fail(tensor, "has no dtype");
    SafetensorsEntry entry;
    entry.dtype_name = dtype->get<std::string>();
    std::tie(entry.begin, entry.end) = offsets(tensor, json);
    Shape extents = shape(tensor, json);
    check_size(tensor, entry, extents);
    for (DType known : {DType::f64, DType::f32, DType::i64, DType::i32, DType::boolean})
      if (safetensors_dtype_name(known) == entry.dtype_name) entry.type = {known, std::move(extents)};
    header_.entries.emplace(tensor, std::move(entry));
  }

  std::pair<std::uint64_t, std::uint64_t> offsets(std::string_view tensor, const Json& json) const {
    const auto found = json.find("data_offsets");
    if (found == json.end() || !found->is_array() || found->size() != 2 ||
        !std::ranges::all_of(*found, &Json::is_number_unsigned))
      fail(tensor, "has no valid data_offsets: expected two integers from 0 on");
    const auto begin = (*found)[0].get<std::uint64_t>();
    const auto end = (*found)[1].get<std::uint64_t>();
    if (begin > end || end > data_size_)
      fail(tensor, "lies at bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                       std::to_string(data_size_) + " bytes of data");
    return {begin, end};
  }

  Shape shape(std::string_view tensor, const Json& json) const {
    const auto found = json.find("shape");
    if (found == json.end() || !found->is_array()) fail(tensor, "has no shape");
    Shape extents;
    for (const Json& extent : *found) {
      if (!extent.is_number_unsigned() ||
          extent.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
        fail(tensor, "has an extent that is not an integer from 0 on");
      extents.push_back(extent.get<std::int64_t>());
    }
    return extents;
  }

  /// Of all dtypes of the format, also those that Loipe does not read.
  void check_size(std::string_view tensor, const SafetensorsEntry& entry, const Shape& extents) const {
    const auto* dtype = std::ranges::find(kFormatDTypes, entry.dtype_name, &FormatDType::name);
    if (dtype == std::end(kFormatDTypes)) return;
    const std::string type = shortened(entry.dtype_name + to_string(extents));
    std::uint64_t wanted = 0;
    try {
      wanted = static_cast<std::uint64_t>(element_count(extents)) * dtype->bytes;
    } catch (const ResourceError&) {
      fail(tensor, "is " + type + ", which has more elements than can be addressed");
    }
    if (wanted != entry.end - entry.begin)
      fail(tensor, "is " + type + " and needs " + std::to_string(wanted) + " bytes, but has " +
                       std::to_string(entry.end - entry.begin));
  }

  void check_coverage() const {
    using Place = std::pair<std::string_view, const SafetensorsEntry*>;
    std::vector<Place> places;
    for (const auto& [tensor, entry] : header_.entries) places.emplace_back(tensor, &entry);
    std::ranges::sort(places, {}, [](const Place& p) { return std::pair(p.second->begin, p.second->end); });
    std::uint64_t covered = 0;
    for (const auto& [tensor, entry] : places) {
      if (entry->begin < covered) fail(tensor, "overlaps another tensor");
      if (entry->begin > covered) fail(tensor, "follows a gap in the data");
      covered = entry->end;
    }
    if (covered != data_size_)
      fail("it holds " + std::to_string(data_size_ - covered) + " bytes that belong to no tensor");
  }

  std::uint64_t data_size_;
  const std::string& name_;
  SafetensorsHeader header_;
};

}  // namespace

std::string_view safetensors_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::f64: return "F64";
    case DType::boolean: return "BOOL";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
  }
  throw InternalError("unknown dtype");
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_size,
                                           const std::string& name) {
  return HeaderParser(data_size, name).parse(json);
}

}  // namespace loipe
