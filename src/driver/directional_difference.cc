// SPDX-License-Identifier: Apache-2.0
#include "driver/directional_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/builder.h"
#include "ir/interpreter.h"

namespace loipe {

namespace {

constexpr std::size_t kSteps = 10;
constexpr double kShrink = 1.4;

using Differences = std::array<double, kSteps>;

/// From central differences at the steps h, h/1.4, h/1.4^2, ... the limit at 0. Entry
/// (k, m) of the tableau removes the error terms up to h^(2m).
double extrapolated(const Differences& differences) {
  Differences previous = differences, current{};
  double best = differences[0], best_change = std::numeric_limits<double>::infinity();
  double factor = 1;
  for (std::size_t m = 1; m < kSteps; ++m) {
    factor *= kShrink * kShrink;
    for (std::size_t k = m; k < kSteps; ++k) {
      current[k] = (previous[k] * factor - previous[k - 1]) / (factor - 1);
      const double change =
          std::max(std::abs(current[k] - previous[k]), std::abs(current[k] - previous[k - 1]));
      if (change < best_change) {
        best_change = change;
        best = current[k];
      }
    }
    previous = current;
  }
  return best;
}

std::vector<Tensor> moved(std::span<const Tensor> point, std::span<const Tensor> direction, double step) {
  std::vector<Tensor> result(point.begin(), point.end());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!is_floating(result[i].dtype())) continue;
    const std::span<double> x = result[i].elements<double>();
    const std::span<const double> v = direction[i].elements<double>();
    for (std::size_t k = 0; k < x.size(); ++k) x[k] += step * v[k];
  }
  return result;
}

}  // namespace

std::vector<Tensor> directional_difference(const TensorFunction& f, std::span<const Tensor> point,
                                           std::span<const Tensor> direction, double first_step) {
  std::vector<std::vector<Differences>> differences;  // [output][element][step]
  std::vector<Tensor> result;
  double step = first_step;
  for (std::size_t k = 0; k < kSteps; ++k, step /= kShrink) {
    std::vector<Tensor> ahead = f(moved(point, direction, step));
    const std::vector<Tensor> behind = f(moved(point, direction, -step));
    differences.resize(ahead.size());
    for (std::size_t i = 0; i < ahead.size(); ++i) {
      differences[i].resize(static_cast<std::size_t>(ahead[i].element_count()));
      for (std::size_t e = 0; e < differences[i].size(); ++e) {
        const auto position = static_cast<std::int64_t>(e);
        differences[i][e][k] = (ahead[i].at(position) - behind[i].at(position)) / (2 * step);
      }
    }
    result = std::move(ahead);
  }
  for (std::size_t i = 0; i < result.size(); ++i)
    std::ranges::transform(differences[i], result[i].elements<double>().begin(), extrapolated);
  return result;
}

Program with_stopped_values(const Program& program, std::span<const Tensor> arguments) {
  const auto is_stop = [&](Value v) { return program.op(v).name.value == "stop_gradient"; };
  std::vector<Value> stops;
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (is_stop(Value{i})) stops.push_back(Value{i});
  Program inner = program;
  inner.set_outputs(stops);
  const std::vector<Tensor> values = evaluate(inner, arguments);

  Builder builder(program.name());
  std::vector<Value> now(program.size());
  std::size_t argument = 0, stop = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value old{i};
    std::vector<Value> operands;
    for (Value operand : program.operands(old)) operands.push_back(now[operand.index]);
    if (&program.op(old) == &argument_op())
      now[i] = builder.argument(program.argument_name(argument++), program.type(old));
    else if (is_stop(old)) now[i] = builder.constant(values[stop++]);
    else now[i] = builder.emit(program.op(old), operands, program.attributes(old));
  }
  std::vector<Value> outputs;
  for (Value output : program.outputs()) outputs.push_back(now[output.index]);
  return builder.finish(std::move(outputs));
}

}  // namespace loipe
