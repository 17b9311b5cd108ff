// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loipe {

enum class AttentionMethod : std::uint8_t {
  exact,
  automatic,      ///< per head what the measured logits allow within the tolerance; exact where nothing does
  almost_linear,  ///< a polynomial for exp: time linear in the length; for small logits
  clustered,      ///< exact forward, backward by clusters of keys: sub-quadratic; for trained weights
};

enum class AttentionCoefficients : std::uint8_t { automatic, taylor, hermite, minimax };

/// How attention may be approximated. 0 means: chosen from the measured logits
/// (docs/guides/approximate_attention.md).
struct AttentionApproximation {
  AttentionMethod method = AttentionMethod::exact;
  double tolerance = 1e-2;  ///< relative error (Frobenius) of the output and of each derivative
  int degree = 0;           ///< of the polynomial; even degrees are positive everywhere
  AttentionCoefficients coefficients = AttentionCoefficients::automatic;
  std::int64_t near = 0;  ///< pairs with |i - j| < near are exact within almost_linear
  std::int64_t clusters = 0;
  std::int64_t exact_keys = 0;        ///< for each query, in the mean
  bool is_forward_clustered = false;  ///< clustered in the forward pass too
  /// almost_linear: the formulas of exact attention with approximate weights, else the exact gradient of the
  /// approximate network.
  bool has_paper_gradient = false;
  /// Bytes that almost_linear may take for each head where the degree is open.
  std::int64_t memory = 0;
  bool is_audited = true;  ///< errors are measured on sampled rows and columns
};

/// A relative error (Frobenius), estimated, with the interval in which it lies 9 times out of 10. NaN: not
/// measured.
struct MeasuredError {
  double value, low, high;
};

/// What was done for one head of keys.
struct AttentionHeadReport {
  AttentionMethod forward, backward;  ///< never automatic
  AttentionCoefficients coefficients;
  int degree;
  std::int64_t features, rank, near, clusters, exact_keys;
  std::int64_t sampled;   ///< clustered: queries that see all keys, and make dk and dv unbiased
  double logit_spread;    ///< root mean square of the logits, keys centred
  double logit_bound;     ///< no logit is larger
  double largest_logit;   ///< of the sampled ones
  double effective_rank;  ///< directions that hold 99.9 % of the logits' energy
  double predicted_error, predicted_flops;
  double predicted_bytes;  ///< of workspace, beside inputs and results
  std::string reason;      ///< why this method
  int escalations;         ///< plans that missed the tolerance before this one
  std::int64_t guarded_rows;
  MeasuredError o, dq, dk, dv;
  /// How dk and dv were measured: "none", "exact columns", "columns with approximate normalisers", "pairs".
  std::string column_audit;
  /// No error is larger, whatever the data; infinite where there is no useful bound.
  double bound_o, bound_dq, bound_dk, bound_dv;
};

/// One attention of a program: its heads of keys.
struct AttentionReport {
  std::vector<AttentionHeadReport> heads;
};

}  // namespace loipe
