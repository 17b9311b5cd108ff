// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loipe {

/// The passes of back ends, in the order of backend_passes.def.
enum class BackendPass : std::uint8_t {
#define LOIPE_BACKEND_PASS(name, summary, from, to) name,
#include "backends/backend_passes.def"
#undef LOIPE_BACKEND_PASS
  count
};
inline constexpr std::size_t kBackendPasses = static_cast<std::size_t>(BackendPass::count);

struct BackendPassInfo {
  std::string_view name, summary;
  std::string_view from, to;  ///< what its report counts, before and after
};
std::span<const BackendPassInfo> all_backend_passes();

/// Passes that shall not run.
class DisabledPasses {
 public:
  DisabledPasses() = default;
  /// UserError for a name that no pass of back ends has.
  explicit DisabledPasses(const std::vector<std::string>& names);

  void add(BackendPass pass) { set_.set(static_cast<std::size_t>(pass)); }
  bool contains(BackendPass pass) const { return set_.test(static_cast<std::size_t>(pass)); }

 private:
  std::bitset<kBackendPasses> set_;
};

/// What one pass did.
struct BackendPassReport {
  BackendPassInfo pass;
  double seconds = 0;
  std::int64_t before = 0, after = 0;  ///< of BackendPassInfo::from and to
  std::string text;                    ///< what it made, a line or more each
};

}  // namespace loipe
