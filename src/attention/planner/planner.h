// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "attention/almost_linear/almost_linear.h"
#include "attention/problem.h"
#include "attention/statistics/statistics.h"

// Which method, with which parameters, for each head of keys and its readers: from shapes, measured
// statistics and what is asked for alone, with no clock and no chance, so that equal inputs get equal plans.
// Models of error and cost, and where their constants come from: docs/theory/attention_error.md.

namespace loipe::attention::planner {

enum class Method : std::uint8_t { exact, automatic, almost_linear, clustered };
enum class Coefficients : std::uint8_t { automatic, taylor, hermite, minimax };
enum class Pairing : std::uint8_t { exact_forward, fully_approximate };

const char* name_of(Method method);
const char* name_of(Coefficients coefficients);

struct Request {
  Method method = Method::automatic;
  double tolerance = 1e-2;  ///< relative Frobenius error of gradients (above 0)
  int degree = 0;           ///< 0: chosen, even; odd ones only on request
  Coefficients coefficients = Coefficients::automatic;
  std::int64_t window = 0;                    ///< of the exact near window of polynomials and clusters
  std::int64_t clusters = 0, exact_keys = 0;  ///< 0: chosen
  std::int64_t sampled = 0;                   ///< queries of clustered::Budget; 0: chosen
  Pairing pairing = Pairing::exact_forward;   ///< of clustered attention
  almost_linear::Gradient gradient = almost_linear::Gradient::consistent;
  std::int64_t memory_limit = 0;  ///< bytes beside inputs and results, of one head; 0: none
};

/// What of a head is known beside its numbers.
struct HeadShape {
  std::int64_t readers, queries, keys, head_size, value_size;
  bool is_causal = false, has_window = false, has_bias = false;
  int element_bytes = 4, threads = 1;
};

/// Why what was asked for cannot be had. `automatic` is never refused: there is always the exact method.
enum class Refusal : std::uint8_t {
  none,
  mask,        ///< a window of the mask or a bias: exact alone has them
  not_finite,  ///< statistics show NaN or infinite entries
  tolerance,   ///< not above 0, or not a number
  degree,      ///< not in 0 .. polynomial::kMaxDegree
  memory,      ///< of features, above the limit: `features` and `bytes` say how much
  clusters,    ///< more than keys, or a negative number
};

/// Why a head has its plan.
enum class Reason : std::uint8_t {
  asked,         ///< exact: the method was asked for
  no_saving,     ///< exact: nothing is cheaper at this length and tolerance
  small_logits,  ///< almost linear
  large_logits,  ///< clustered
  given_up,      ///< exact: the audit found too large an error, and more effort saves nothing
  audit,         ///< more than was planned first: the audit found too large an error
  mask,          ///< exact: a window of the mask or a bias
  not_finite,    ///< exact: entries are NaN or infinite
  refused,       ///< exact: what was asked for cannot be had
};
/// In words.
const char* text_of(Reason reason);

struct HeadPlan {
  Method method = Method::exact;
  Refusal refusal = Refusal::none;
  Reason reason = Reason::asked;
  // almost linear
  int degree = 0;
  Coefficients coefficients = Coefficients::taylor;
  double parameter = 0;       ///< spread for hermite, range for minimax
  std::int64_t rank = 0;      ///< of the projection; 0: none
  std::int64_t features = 0;  ///< monomials; 0 for other methods
  almost_linear::Gradient gradient = almost_linear::Gradient::consistent;
  bool has_odd_degree = false;  ///< worth a warning: the denominator may vanish
  // clustered
  std::int64_t clusters = 0, exact_keys = 0;
  std::int64_t sampled = 0;  ///< queries, of an exact forward pass; see clustered::Budget
  Pairing pairing = Pairing::exact_forward;

  std::int64_t window = 0;
  double predicted_error = 0;  ///< relative, of gradients; 0: exact
  double flops = 0;            ///< forward and backward, in units of an exact kernel's FLOP
  double bytes = 0;            ///< workspace beside inputs and results

  double seconds(double flops_per_second) const { return flops / flops_per_second; }
};

HeadPlan plan_head(const HeadShape& shape, const statistics::HeadStatistics& statistics,
                   const Request& request);

/// The next plan when the audit has found a relative error above the tolerance: the next even degree, or the
/// next doubling of clusters and keys, that should meet it, from the measured error on; exact where that
/// saves nothing. A request for one method stays with it as long as it can.
HeadPlan escalate(const HeadPlan& plan, double measured_error, const HeadShape& shape,
                  const statistics::HeadStatistics& statistics, const Request& request);

/// The polynomial of a plan, into [degree + 1].
void write_coefficients(const HeadPlan& plan, std::span<double> coefficients);

/// Expected relative errors on logits whose rows are Gaussian, with the spread of q's norm that `dimensions`
/// independent directions have.
struct PredictedError {
  double output, gradient;
};
PredictedError predict_error(std::span<const double> coefficients, double spread, std::int64_t dimensions,
                             almost_linear::Gradient gradient);

/// FLOP of forward and backward of the exact method for one head.
double exact_flops(const HeadShape& shape);

}  // namespace loipe::attention::planner
