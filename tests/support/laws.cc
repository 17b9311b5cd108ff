// SPDX-License-Identifier: Apache-2.0
#include "support/laws.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "ir/interpreter.h"
#include "support/dense_jacobian.h"
#include "support/law_checks.h"
#include "support/shrink.h"

namespace loipe::testing {

std::vector<std::size_t> floating_arguments(const Program& program) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    if (is_floating(program.type(program.arguments()[i]).dtype)) positions.push_back(i);
  return positions;
}

namespace {

/// The largest magnitude among the numbers, at least 1.
double scale_of(std::span<const Tensor> tensors) {
  double scale = 1;
  for (const Tensor& tensor : tensors)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      if (std::isfinite(tensor.at(i))) scale = std::max(scale, std::abs(tensor.at(i)));
  return scale;
}

/// Whether values and derivatives move no more than the inputs, by a wide margin.
bool is_regular(const Case& c) {
  const auto derivatives = [&](std::span<const Tensor> arguments) {
    const std::vector<Tensor> point(arguments.begin(), arguments.end());
    std::vector<Tensor> all = evaluate(c.program, point);
    for (Tensor& block : dense_jacobian(c.program, point, floating_arguments(c.program)))
      all.push_back(std::move(block));
    return all;
  };
  const std::vector<Tensor> here = derivatives(c.arguments);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Rng rng(seed);
    std::vector<Tensor> near = c.arguments;
    for (Tensor& argument : near)
      for (std::int64_t i = 0; is_floating(argument.dtype()) && i < argument.element_count(); ++i)
        argument.set(i, argument.at(i) + 1e-9 * rng.uniform(-1, 1));
    if (!difference(derivatives(near), here, 1e-6).empty()) return false;
  }
  return true;
}

/// Derivatives are of floating results.
bool is_differentiable(const Program& program) {
  return std::ranges::all_of(program.outputs(), [&](Value v) { return is_floating(program.type(v).dtype); });
}

}  // namespace

std::string difference(std::span<const Tensor> values, std::span<const Tensor> expected, double tolerance) {
  if (values.size() != expected.size()) return "another number of results";
  const double scale = scale_of(expected);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].type() != expected[i].type())
      return "result " + std::to_string(i) + " is " + to_string(values[i].type()) + " instead of " +
             to_string(expected[i].type());
    const double deviation = relative_deviation(values[i], expected[i], scale);
    if (!(deviation <= tolerance))
      return "result " + std::to_string(i) + " deviates by " + std::to_string(deviation * 1e12) + "e-12";
  }
  return "";
}

std::string violation_at_regular_point(const Law& law, const Case& c) {
  if (!is_differentiable(c.program)) return "";
  const std::string violation = violation_of(law.violation, c);
  return violation.empty() || !is_regular(c) ? "" : violation;
}

std::string broken_law_report(const Law& law, const Case& c, const std::string& origin) {
  const Property property = [&law](const Case& variant) { return violation_at_regular_point(law, variant); };
  if (violation_of(property, c).empty()) return "";
  const Shrunk shrunk = shrink(c, property, 1000);
  return "law '" + std::string(law.name) + "' is broken by " + origin + "; smallest case after " +
         std::to_string(shrunk.trials) + " trials:\n" + to_string(shrunk.smallest) + shrunk.violation + "\n";
}

}  // namespace loipe::testing
