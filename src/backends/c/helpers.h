// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loipe::c {

/// A function of C that generated code calls: written once for each dtype that needs it. In its text
/// $T stands for the C type, $U for the unsigned one, $S for the dtype's name, $F for the suffix of libm's
/// functions, $LEAST and $MOST for the ends of an integer type, $IS_NAN for isnan (of integers: never), and
/// $P_name_$S for another helper.
struct Helper {
  std::string_view name;
  std::string_view text;
  std::vector<std::string_view> needs = {};  ///< helpers of the same dtype
};

/// All helpers, one list for each of their files.
std::span<const Helper> integer_helpers();
std::span<const Helper> row_helpers();
std::span<const Helper> attention_helpers();

/// The helpers of one source. Their names begin with that of its function, so that several sources may be
/// compiled as one.
class Helpers {
 public:
  explicit Helpers(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The name of the function, which from now on is there.
  std::string use(std::string_view name, DType dtype);
  /// All that are used, callees first.
  const std::string& text() const { return text_; }

 private:
  std::string prefix_, text_;
  std::set<std::string> written_;
};

}  // namespace loipe::c
