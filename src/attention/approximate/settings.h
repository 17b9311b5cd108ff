// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attention/planner/planner.h"

namespace loipe::attention::approximate {

using planner::Method;
using CoefficientKind = planner::Coefficients;

/// What an approximate attention may do, for all heads alike. 0 lets the planner choose.
struct Settings {
  Method method = Method::exact;
  double tolerance = 1e-2;  ///< relative error (Frobenius) of O, dQ, dK, dV, each
  int degree = 0;           ///< of the polynomial
  CoefficientKind coefficients = CoefficientKind::automatic;
  std::int64_t near = 0;  ///< pairs with |i - j| < near have exp itself; 0: none
  std::int64_t clusters = 0, exact_keys = 0;
  bool is_forward_clustered = false;  ///< else clustered means exact forward, clustered backward
  bool has_paper_gradient = false;    ///< see almost_linear::Gradient
  /// Bytes that the sums of features may take where `degree` is left open; 0: 32 MiB, or twice inputs and
  /// results.
  std::int64_t memory = 0;
  /// Measures errors on sampled rows and columns; the method `automatic` always does.
  bool is_audited = true;

  bool operator==(const Settings&) const = default;
};

/// "auto tolerance=0.01 degree=2": the method, then what differs from the defaults. `parse_settings` reads
/// it back; UserError for anything else, with what was expected.
std::string to_text(const Settings& settings);
Settings parse_settings(std::string_view text);

/// UserError, which names `what`, for an unknown name.
Method parse_method(std::string_view what, std::string_view text);
CoefficientKind parse_coefficient_kind(std::string_view what, std::string_view text);

/// UserError, in the words of `what` followed by the name of the setting, where a number is outside its
/// range or has no meaning for the method.
void check_settings(std::string_view what, const Settings& settings);
/// UserError for more clusters than keys; ResourceError where the features of the asked degree are too many
/// for any memory.
void check_settings(const Settings& settings, const Shape& shape);

}  // namespace loipe::attention::approximate
