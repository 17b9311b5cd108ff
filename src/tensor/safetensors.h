// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/safetensors_header.h"

namespace loipe {

class InputFile;

/// A safetensors file: named tensors and text metadata. Reading checks the whole
/// header but loads no tensor: each is loaded when asked for, so that a file may
/// hold far more than is used. Every mistake in the file is a FileError that
/// names the file and the tensor.
class SafetensorsFile {
 public:
  static SafetensorsFile read(const std::filesystem::path& path);

  /// All names, sorted.
  std::vector<std::string> names() const;
  bool has(std::string_view name) const { return header_.entries.contains(name); }
  /// The type of a tensor, without loading it. Throws as `tensor` does.
  TensorType type(std::string_view name) const;
  /// FileError when there is no such tensor; Unsupported when its dtype is none of ours.
  Tensor tensor(std::string_view name) const;
  const Metadata& metadata() const { return header_.metadata; }

 private:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const SafetensorsEntry& entry(std::string_view name) const;

  std::shared_ptr<const InputFile> file_;
  SafetensorsHeader header_;
  std::uint64_t data_begin_ = 0;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Writes all or nothing (see write_file); every tensor lies aligned to its
/// elements. A name given twice is a UserError.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata = {});

}  // namespace loipe
