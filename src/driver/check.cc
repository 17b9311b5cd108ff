// SPDX-License-Identifier: Apache-2.0
#include "driver/check.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "driver/deviation.h"
#include "driver/directional_difference.h"

namespace loipe {

namespace {

constexpr double kFirstStep = 0.02;

std::vector<Tensor> in_double(std::span<const Tensor> tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors)
    result.push_back(is_floating(tensor.dtype()) ? tensor.converted(DType::f64) : tensor);
  return result;
}

/// Random, each component as large as the input beside it: where the function lives.
/// Zero for arguments that nothing is differentiated by.
std::vector<Tensor> random_direction(std::span<const Tensor> point, const std::vector<std::size_t>& wrt,
                                     Rng& rng) {
  std::vector<Tensor> direction;
  for (std::size_t i = 0; i < point.size(); ++i) {
    direction.emplace_back(TensorType{DType::f64, point[i].shape()});
    if (std::ranges::find(wrt, i) == wrt.end()) continue;
    for (std::int64_t k = 0; k < point[i].element_count(); ++k) {
      const double size = std::abs(point[i].at(k));
      direction.back().set(k, rng.normal() * (size > 0 ? size : 1));
    }
  }
  return direction;
}

/// Contractions of the blocks of a run with directions. Blocks are [examples] + out + in.
class Blocks {
 public:
  Blocks(const TaskJacobian& jacobian, std::span<const Tensor> results)
      : jacobian_(jacobian), results_(results) {}

  /// J v of output i, and in `bound` the same with magnitudes.
  std::vector<double> forward(std::size_t i, std::span<const Tensor> direction,
                              std::vector<double>& bound) const {
    const auto elements = static_cast<std::size_t>(results_[i].element_count());
    std::vector<double> product(elements, 0);
    bound.assign(elements, 0);
    for (std::size_t k = 0; k < jacobian_.wrt().size(); ++k) {
      const Tensor& v = direction[jacobian_.wrt()[k]];
      for_each_entry(i, k, [&](std::size_t out, std::int64_t in, double entry) {
        product[out] += entry * v.at(in);
        bound[out] += std::abs(entry * v.at(in));
      });
    }
    return product;
  }

  /// <J^T w, v> over output i: w is applied first.
  double reverse(std::size_t i, const std::vector<double>& w, std::span<const Tensor> direction) const {
    double total = 0;
    for (std::size_t k = 0; k < jacobian_.wrt().size(); ++k) {
      const Tensor& v = direction[jacobian_.wrt()[k]];
      std::vector<double> cotangent(static_cast<std::size_t>(v.element_count()), 0);
      for_each_entry(i, k, [&](std::size_t out, std::int64_t in, double entry) {
        cotangent[static_cast<std::size_t>(in)] += entry * w[out];
      });
      for (std::size_t in = 0; in < cotangent.size(); ++in)
        total += cotangent[in] * v.at(static_cast<std::int64_t>(in));
    }
    return total;
  }

 private:
  /// visit(element of output i, element of the argument, entry) over one block.
  template <class Visit>
  void for_each_entry(std::size_t i, std::size_t k, Visit visit) const {
    const Tensor& block = results_[jacobian_.output_count() + i * jacobian_.wrt().size() + k];
    const std::int64_t outs = results_[i].element_count();
    if (outs == 0 || block.element_count() == 0) return;
    const std::int64_t ins = block.element_count() / outs;
    const BatchPlan& batch = jacobian_.batch();
    const bool is_per_example = batch.has_caller_axis() && batch.is_batched(jacobian_.wrt()[k]);
    const std::int64_t outs_of_example = outs / (is_per_example ? batch.examples : 1);
    for (std::int64_t out = 0; out < outs; ++out)
      for (std::int64_t in = 0; in < ins; ++in) {
        const std::int64_t first_in = is_per_example ? out / outs_of_example * ins : 0;
        visit(static_cast<std::size_t>(out), first_in + in, block.at(out * ins + in));
      }
  }

  const TaskJacobian& jacobian_;
  std::span<const Tensor> results_;
};

struct Deviations {
  double forward = 0, reverse = 0;
};

/// NaN counts as the worst deviation.
double worse(double a, double b) { return std::isnan(b) || b > a ? (std::isnan(b) ? INFINITY : b) : a; }

Deviations deviations_along(const Blocks& blocks, std::span<const Tensor> direction,
                            std::span<const Tensor> differences, Rng& rng) {
  Deviations worst;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    std::vector<double> bound;
    const std::vector<double> product = blocks.forward(i, direction, bound);
    const double unit = bound.empty() ? 1 : std::max(*std::ranges::max_element(bound), 1e-300);
    std::vector<double> w(product.size());
    double expected = 0, weight = 1e-300;
    for (std::size_t e = 0; e < product.size(); ++e) {
      const double difference = differences[i].at(static_cast<std::int64_t>(e));
      worst.forward = worse(worst.forward, std::abs(product[e] - difference) / unit);
      w[e] = rng.normal();
      expected += w[e] * difference;
      weight += std::abs(w[e]) * unit;
    }
    worst.reverse = worse(worst.reverse, std::abs(blocks.reverse(i, w, direction) - expected) / weight);
  }
  return worst;
}

/// The function itself in float64, on the caller's tensors.
TensorFunction primal_function(const Subject& subject, const CheckOptions& options,
                               std::span<const Tensor> point) {
  const Program program = subject.program(DType::f64);
  std::vector<Tensor> arguments;
  const auto with_program_shapes = [program](std::span<const Tensor> tensors) {
    std::vector<Tensor> result;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      result.emplace_back(program.type(program.arguments()[i]));
      std::ranges::copy(tensors[i].bytes(), result.back().bytes().begin());
    }
    return result;
  };
  const Program fixed = with_stopped_values(program, with_program_shapes(point));
  std::shared_ptr<const Executable> executable =
      find_backend(options.jacobian.backend).compile(fixed, {options.jacobian.threads, 0});
  return [executable, with_program_shapes](std::span<const Tensor> tensors) {
    return executable->run(with_program_shapes(tensors));
  };
}

}  // namespace

CheckReport check(const Subject& subject, const CheckOptions& options, std::span<const Tensor> inputs) {
  const TaskJacobian jacobian(subject, options.jacobian);
  const std::vector<Tensor> results = jacobian.run(inputs);
  const std::vector<Tensor> point = in_double(inputs);
  TaskJacobianOptions other = options.jacobian;
  other.order = options.against;
  other.dtype = DType::f64;
  const TaskJacobian in_other_order(subject, other);
  const std::vector<Tensor> reference = in_other_order.run(point);
  const bool is_single =
      std::ranges::any_of(results, [](const Tensor& t) { return t.dtype() == DType::f32; });
  CheckReport report;
  report.zeros = block_zeros(in_other_order, reference);
  if (options.pattern_file) report.patterns = compare_with_file(jacobian, *options.pattern_file);
  std::vector<CheckLine>& lines =
      report.lines = {{"order '" + jacobian.order().name + "' against order '" + options.against + "' in f64",
                       max_relative_error(results, reference, jacobian.output_count()),
                       options.tolerance.value_or(is_single ? 2e-4 : 1e-9)}};

  const TensorFunction f = primal_function(subject, options, point);
  const Blocks blocks(jacobian, results);
  Rng rng(options.seed);
  for (int k = 1; k <= options.directions; ++k) {
    const std::vector<Tensor> direction = random_direction(point, jacobian.wrt(), rng);
    const std::vector<Tensor> differences = directional_difference(f, point, direction, kFirstStep);
    const Deviations found = deviations_along(blocks, direction, differences, rng);
    const double tolerance = options.tolerance.value_or(is_single ? 1e-3 : 1e-6);
    lines.push_back({"J v against differences, direction " + std::to_string(k), found.forward, tolerance});
    lines.push_back(
        {"<J^T w, v> against differences, direction " + std::to_string(k), found.reverse, tolerance});
  }
  return report;
}

}  // namespace loipe
