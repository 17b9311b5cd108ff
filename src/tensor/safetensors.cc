// SPDX-License-Identifier: Apache-2.0
#include "tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "base/file.h"
#include "base/printable.h"
#include "base/text.h"

namespace loipe {

// The format is little-endian and so is every machine that we build for.
static_assert(std::endian::native == std::endian::little);

namespace {

using LengthField = std::array<std::byte, sizeof(std::uint64_t)>;

std::string read_header_text(const InputFile& file) {
  const std::string start = "file " + file.name() + " is not a valid safetensors file: ";
  LengthField field;
  if (file.size() < field.size()) throw FileError(start + "it is shorter than 8 bytes");
  file.read(0, field);
  const auto length = std::bit_cast<std::uint64_t>(field);
  if (length > file.size() - field.size())
    throw FileError(start + "its header of " + std::to_string(length) + " bytes does not fit into " +
                    std::to_string(file.size()) + " bytes");
  if (length > kLargestSafetensorsHeader)
    throw FileError(start + "its header of " + std::to_string(length) +
                    " bytes is longer than the format allows");
  std::string text(length, '\0');
  file.read(field.size(), std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) throw FileError(start + "its header does not begin with '{'");
  return text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(std::make_shared<const InputFile>(path)) {
  const std::string text = read_header_text(*file_);
  data_begin_ = sizeof(LengthField) + text.size();
  header_ = parse_safetensors_header(text, file_->size() - data_begin_, file_->name());
}

SafetensorsFile SafetensorsFile::read(const std::filesystem::path& path) { return SafetensorsFile(path); }

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : header_.entries) result.push_back(name);
  return result;
}

const SafetensorsEntry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = header_.entries.find(name);
  if (found == header_.entries.end())
    throw FileError(
        printable("file " + file_->name() + " holds no tensor " + quote(name) + did_you_mean(name, names())));
  if (!found->second.type)
    throw Unsupported(printable("tensor " + quote(shortened(name)) + " of file " + file_->name() +
                                " has dtype " + shortened(found->second.dtype_name) +
                                ": expected F64, F32, I64, I32 or BOOL"));
  return found->second;
}

TensorType SafetensorsFile::type(std::string_view name) const { return *entry(name).type; }

Tensor SafetensorsFile::tensor(std::string_view name) const {
  const SafetensorsEntry& place = entry(name);
  try {
    Tensor result(*place.type);
    file_->read(data_begin_ + place.begin, result.bytes());
    // A bool of any other value would be undefined behaviour later.
    if (result.dtype() == DType::boolean &&
        std::ranges::any_of(result.bytes(), [](std::byte b) { return b > std::byte{1}; }))
      throw FileError(printable("tensor " + quote(shortened(name)) + " of file " + file_->name() +
                                " is BOOL but holds bytes other than 0 and 1"));
    return result;
  } catch (const std::bad_alloc&) {
    throw ResourceError(printable("tensor " + quote(shortened(name)) + " of file " + file_->name() +
                                  " needs " + std::to_string(place.end - place.begin) +
                                  " bytes of memory, which are not there"));
  }
}

namespace {

/// Larger elements first, so that each tensor starts at a multiple of its element size.
std::vector<const NamedTensors::value_type*> aligned_layout(const NamedTensors& tensors) {
  std::vector<const NamedTensors::value_type*> layout;
  for (const auto& tensor : tensors) layout.push_back(&tensor);
  std::ranges::sort(layout, [](const auto* a, const auto* b) {
    const auto size_a = size_of(a->second.dtype()), size_b = size_of(b->second.dtype());
    return size_a != size_b ? size_a > size_b : a < b;
  });
  return layout;
}

std::string header_text(std::span<const NamedTensors::value_type* const> layout, const Metadata& metadata) {
  nlohmann::json json = nlohmann::json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::size_t end = 0;
  for (const auto* named : layout) {
    const auto& [name, tensor] = *named;
    const std::size_t begin = std::exchange(end, end + tensor.bytes().size());
    json[name] = {{"dtype", safetensors_dtype_name(tensor.dtype())},
                  {"shape", tensor.shape()},
                  {"data_offsets", {begin, end}}};
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data start aligned, too
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata) {
  std::set<std::string_view> names{"__metadata__"};
  for (const auto& [name, tensor] : tensors)
    if (!names.insert(name).second)
      throw UserError("tensor name " + quote(name) + " is reserved or given twice for file " +
                      quote(path.string()));
  const auto layout = aligned_layout(tensors);
  std::string header;
  try {
    header = header_text(layout, metadata);
  } catch (const nlohmann::json::exception&) {
    throw UserError("a tensor name or metadata for file " + quote(path.string()) + " is not valid UTF-8");
  }
  const auto length = std::bit_cast<LengthField>(static_cast<std::uint64_t>(header.size()));
  std::vector<std::span<const std::byte>> pieces{length, std::as_bytes(std::span(header))};
  for (const auto* named : layout) pieces.push_back(named->second.bytes());
  write_file(path, pieces);
}

}  // namespace loipe
