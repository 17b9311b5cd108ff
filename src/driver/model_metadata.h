// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/safetensors.h"

namespace loipe {

/// The metadata of a file as values; errors are UserErrors that name the file and the key.
class ModelMetadata {
 public:
  ModelMetadata(const SafetensorsFile& file, std::string where) : file_(file), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The text; where it must be one of `choices`, the nearest is suggested.
  std::string text(std::string_view key, const std::vector<std::string>& choices) const;
  std::string text_or(std::string_view key, const std::string& otherwise,
                      const std::vector<std::string>& choices) const;
  std::int64_t integer(std::string_view key, std::int64_t least) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least) const;
  /// 0 or 1, also false or true.
  bool flag_or(std::string_view key, bool otherwise) const;
  /// A finite number.
  std::optional<double> number(std::string_view key) const;

 private:
  const std::string* find(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, const std::string& expected) const;

  const SafetensorsFile& file_;
  std::string where_;
};

/// UserError unless the scale of logits is a number in that dtype too: 1e39 is infinite in f32.
void check_scale(double scale, DType dtype);

/// UserError that names the tensor and the position of its first entry that is NaN or infinite.
void check_finite(const std::string& where, const std::string& name, const Tensor& tensor);

}  // namespace loipe
