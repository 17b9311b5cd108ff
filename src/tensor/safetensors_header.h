// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace loipe {

/// The format's own limit on the header, in bytes.
inline constexpr std::uint64_t kLargestSafetensorsHeader = 100'000'000;

/// Where one tensor lies: bytes begin..end-1 after the header.
struct SafetensorsEntry {
  std::string dtype_name;          ///< as in the file: "F64", "BF16", ...
  std::optional<TensorType> type;  ///< absent when Loipe has no such dtype
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using Metadata = std::map<std::string, std::string, std::less<>>;

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry, std::less<>> entries;
  Metadata metadata;
};

/// Parses and checks the JSON text of a header in front of `data_size` bytes:
/// names are unique, sizes fit shapes, and the tensors cover the data without
/// gap or overlap, as the format demands. FileError that begins with the file's
/// `name` otherwise, whatever the bytes.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_size,
                                           const std::string& name);

/// "F64", "F32", "I64", "I32", "BOOL".
std::string_view safetensors_dtype_name(DType dtype);

}  // namespace loipe
