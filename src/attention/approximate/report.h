// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace loipe::attention::approximate {

/// A measured number with the interval in which it lies 9 times out of 10; NaN: not measured.
struct Measured {
  double value = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

/// How the errors of dK and dV were measured.
enum class ColumnAudit : std::uint8_t {
  none,
  exact_columns,        ///< after an exact forward pass
  approximate_columns,  ///< exact but for the normalisers and O of the approximate forward pass
  pairs,                ///< what pairs of exact rows agree on: unbiased, widely scattered
};

/// What was done for one head of keys, and how far off it is. All members are doubles, so that rows of
/// reports are an array of numbers, and can be the result of an op.
struct HeadReport {
  double method = 0;           ///< Method, of the weights in the forward pass
  double backward_method = 0;  ///< Method, of the derivatives
  double degree = 0, features = 0, rank = 0;
  double coefficients = 0;  ///< CoefficientKind
  double parameter = 0;     ///< of the coefficients: their spread or range
  double near = 0;          ///< see Settings::near
  double clusters = 0, exact_keys = 0;
  double sampled = 0;  ///< queries that see all keys, see clustered::Budget
  double logit_spread = 0;   ///< root mean square of the logits, keys centred
  double logit_bound = 0;    ///< of their absolute values: scale max |q| max |k - centre|
  double largest_logit = 0;  ///< of the sampled ones
  double effective_rank = 0;
  /// Further statistics that bounds need; see statistics::HeadStatistics.
  double keys = 0, scale = 0, query_norm = 0, key_norm = 0, value_norm = 0, lost_energy = 0,
         projection_bound = 0, query_rest = 0, key_rest = 0;
  double predicted_error = 0;  ///< by which the method was chosen
  double work = 0;             ///< predicted, in floating-point operations, forward and backward
  double memory = 0;           ///< predicted, in bytes of workspace
  double reason = 0;           ///< planner::Reason
  double escalations = 0;      ///< how often an audit asked for more than was planned
  double guarded_rows = 0;     ///< whose denominator was not positive
  Measured o, dq, dk, dv;      ///< relative errors (Frobenius)
  double column_audit = 0;     ///< ColumnAudit
  double bound_o = 0, bound_dq = 0, bound_dk = 0, bound_dv = 0;  ///< rigorous ones; infinite: vacuous
};

/// Of a head that is exact in both passes.
inline HeadReport exact_report() {
  HeadReport report;
  report.o = report.dq = report.dk = report.dv = {0, 0, 0};
  return report;
}

inline constexpr std::int64_t kReportColumns = sizeof(HeadReport) / sizeof(double);

}  // namespace loipe::attention::approximate
