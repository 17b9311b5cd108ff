// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "driver/attention_gradients.h"
#include "tensor/safetensors.h"

namespace loipe {

/// What overrides the metadata of an attention file.
struct AttentionOverrides {
  bool is_causal = false;  ///< only ever switches it on
  std::optional<double> scale;
  std::optional<std::int64_t> window;
  std::optional<DType> dtype;
  attention::approximate::Settings settings{};
  std::int64_t repetitions = 1;
};

/// A file with Q, K, V, G and maybe key_mask [keys] and coef [degree + 1] (a polynomial instead of exp), metadata causal (default 0), scale (default
/// 1 / sqrt(head_size)), window (default 0: none), and, if given, heads and kv_heads, which the shapes
/// must agree with. Mistakes are UserErrors that name the tensor or the metadata.
class AttentionFile {
 public:
  AttentionFile(const std::string& path, const AttentionOverrides& overrides, int threads);

  const AttentionRequest& request() const { return request_; }
  void keep_within(std::size_t limit) { loipe::keep_within(request_, limit); }
  /// Loads Q, K, V and G; UserError that names the position of the first NaN or infinity.
  AttentionInputs load() const;

 private:
  SafetensorsFile file_;
  std::string path_;
  AttentionRequest request_;
};

}  // namespace loipe
