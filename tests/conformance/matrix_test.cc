// SPDX-License-Identifier: Apache-2.0
// The matrix op x order x back end x dtype x derivative, without a blank: what an op is
// said to support gives the right numbers at all its samples and at its special points,
// and what it is said not to support is refused for that reason. The list of ops is
// walked, so a new op is in it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backends/backend.h"
#include "differences.h"
#include "driver/derivative.h"
#include "driver/op_support.h"
#include "ir/interpreter.h"
#include "ops/tolerance.h"
#include "singular_points.h"
#include "support/dense_jacobian.h"

namespace loipe::testing {
namespace {

constexpr std::uint64_t kSeed = 20261130;
constexpr double kStep = 0.1;
constexpr const char* kOrders[] = {"forward", "reverse", "markowitz", "random"};

/// Ops whose Jacobian is not their derivative, by definition.
const std::set<std::string_view> kNotTheDerivative{"stop_gradient"};

EliminationOrder order_named(const std::string& name, const Program& program) {
  return name == "random" ? random_order(program, kSeed) : resolve_order(name, program, "");
}

std::vector<double> entries(const std::vector<Tensor>& tensors) {
  std::vector<double> result;
  for (const Tensor& tensor : tensors)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.at(i));
  return result;
}

/// Inputs and expected results of the four kinds at one sample, in f64.
struct Expected {
  std::vector<Tensor> point, tangents, cotangents;
  std::map<DerivativeKind, std::vector<double>> results;
};

DerivativeRequest request_of(DerivativeKind kind, const Program& program, const std::string& order) {
  DerivativeRequest request;
  request.kind = kind;
  request.wrt = floating_arguments(program);
  request.of = {0};
  request.order = order_named(order, program);
  request.returns_values = false;
  return request;
}

/// The accumulation program of one kind and order, the outer order of the same name.
Program derivative_program(DerivativeKind kind, const Program& program, const std::string& order) {
  DerivativeRequest request = request_of(kind, program, order);
  request.outer_order = !is_second_order(kind) ? "" : order == "random" ? "reverse" : order;
  DerivativePlan plan = plan_derivative(program, request);
  if (is_second_order(kind) && order == "random") plan.request.order = random_order(plan.program, kSeed);
  return accumulate(plan.program, plan.request).program;
}

std::vector<Tensor> with(std::vector<Tensor> inputs, const std::vector<Tensor>& seeds) {
  inputs.insert(inputs.end(), seeds.begin(), seeds.end());
  return inputs;
}

std::vector<Tensor> inputs_of(DerivativeKind kind, const Expected& expected) {
  if (kind == DerivativeKind::jvp) return with(expected.point, expected.tangents);
  if (kind == DerivativeKind::vjp) return with(expected.point, expected.cotangents);
  return expected.point;
}

/// d(results of `evaluated`)/d(all floating arguments) by differences, results outermost:
/// per result tensor, per argument, [result elements, argument elements].
std::vector<double> differences(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& evaluated,
    const std::vector<Tensor>& point) {
  std::vector<std::vector<double>> columns;  // per argument element
  std::vector<std::int64_t> sizes;           // per floating argument
  std::vector<Tensor> moved = point;
  for (std::size_t k = 0; k < point.size(); ++k) {
    if (!is_floating(point[k].dtype())) continue;
    sizes.push_back(point[k].element_count());
    for (std::int64_t i = 0; i < sizes.back(); ++i) {
      const double x = point[k].at(i);
      columns.push_back(ridders_derivative(
          [&](double moved_x) {
            moved[k].set(i, moved_x);
            return entries(evaluated(moved));
          },
          x, kStep));
      moved[k].set(i, x);
    }
  }
  std::vector<double> result;
  std::size_t row = 0;
  for (const Tensor& tensor : evaluated(point)) {
    const auto rows = static_cast<std::size_t>(tensor.element_count());
    std::size_t first = 0;
    for (std::int64_t size : sizes) {
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < static_cast<std::size_t>(size); ++c)
          result.push_back(columns[first + c][row + r]);
      first += static_cast<std::size_t>(size);
    }
    row += rows;
  }
  return result;
}

Tensor random_like(const TensorType& type, Rng& rng) {
  Tensor tensor(type);
  // Short numbers: the same in f32.
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, static_cast<double>(rng.between(-8, 8)) / 4);
  return tensor;
}

/// Products of the Jacobian with the seeds, from its entries.
void add_products(Expected& expected, const Program& program) {
  const std::vector<double>& jacobian = expected.results[DerivativeKind::jacobian];
  const auto rows = static_cast<std::size_t>(program.type(program.outputs()[0]).element_count());
  std::vector<double> pushed(rows, 0), pulled;
  std::size_t first = 0;
  for (const Tensor& tangent : expected.tangents) {
    const auto columns = static_cast<std::size_t>(tangent.element_count());
    std::vector<double> row_sums(columns, 0);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) {
        const double entry = jacobian[first + r * columns + c];
        pushed[r] += entry * tangent.at(static_cast<std::int64_t>(c));
        row_sums[c] += entry * expected.cotangents[0].at(static_cast<std::int64_t>(r));
      }
    pulled.insert(pulled.end(), row_sums.begin(), row_sums.end());
    first += rows * columns;
  }
  expected.results[DerivativeKind::jvp] = pushed;
  expected.results[DerivativeKind::vjp] = pulled;
}

Expected expected_at(const OpDef& op, const Sample& sample) {
  const Program program = *program_around(op, sample);
  Expected expected;
  expected.point = arguments_around(sample);
  Rng rng(kSeed);
  for (std::size_t k : floating_arguments(program))
    expected.tangents.push_back(random_like(program.type(program.arguments()[k]), rng));
  expected.cotangents.push_back(random_like(program.type(program.outputs()[0]), rng));
  const Program jacobian = derivative_program(DerivativeKind::jacobian, program, "forward");
  const auto values = [&](const std::vector<Tensor>& at) { return evaluate(program, at); };
  const auto first = [&](const std::vector<Tensor>& at) { return evaluate(jacobian, at); };
  expected.results[DerivativeKind::jacobian] = differences(values, expected.point);
  expected.results[DerivativeKind::hessian] = differences(first, expected.point);
  if (kNotTheDerivative.contains(op.name))
    for (DerivativeKind kind : {DerivativeKind::jacobian, DerivativeKind::hessian})
      std::ranges::fill(expected.results[kind], 0);
  add_products(expected, program);
  return expected;
}

std::vector<Tensor> in_dtype(const std::vector<Tensor>& tensors, DType dtype) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors)
    result.push_back(is_floating(tensor.dtype()) ? tensor.converted(dtype) : tensor);
  return result;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double top = 1;
  for (double x : expected)
    if (std::isfinite(x)) top = std::max(top, std::abs(x));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool is_same = actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
    EXPECT_TRUE(is_same || std::abs(actual[i] - expected[i]) <= tolerance * top)
        << "entry " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

double tolerance_of(DType dtype, DerivativeKind kind) {
  const double rounding = 8 * ops::relative_tolerance(Tolerance::function, dtype);
  return std::max(rounding, kind == DerivativeKind::hessian ? 2e-8 : 2e-9);  // that of differences
}

class Matrix : public ::testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }

  /// Calls with a floating result and a floating operand.
  std::vector<Sample> calls(SampleFn recipe) const {
    std::vector<Sample> result;
    Rng rng(kSeed);
    if (!recipe) return result;
    for (Sample& sample : recipe(rng))
      if (const auto program = program_around(op(), sample);
          program && is_floating(program->type(program->outputs()[0]).dtype) &&
          !floating_arguments(*program).empty())
        result.push_back(std::move(sample));
    return result;
  }
};

std::string_view reason_against(std::span<const OpSupport> fields, DerivativeKind kind) {
  for (const OpSupport& field : fields)
    if (field.derivative == kind) return field.why_not;
  return "";
}

/// All orders, back ends, dtypes and kinds at one sample.
void check_call(const OpDef& op, const Sample& sample, std::span<const OpSupport> fields) {
  const Expected expected = expected_at(op, sample);
  for (DType dtype : {DType::f32, DType::f64}) {
    const Program program = *program_around(op, loipe::in_dtype(sample, dtype));
    for (DerivativeKind kind : matrix_kinds())
      for (const std::string order : kOrders) {
        if (const std::string_view reason = reason_against(fields, kind); !reason.empty()) {
          EXPECT_THROW(derivative_program(kind, program, order), Unsupported) << reason;
          continue;
        }
        const Program derivative = run_passes(derivative_program(kind, program, order));
        const std::vector<Tensor> inputs = in_dtype(inputs_of(kind, expected), dtype);
        for (const OpSupport& field : fields) {
          if (field.derivative != kind || field.dtype != dtype) continue;
          SCOPED_TRACE(to_string(kind) + " " + order + " " + std::string(field.backend) + " " +
                       std::string(to_string(dtype)));
          const auto executable = find_backend(field.backend).compile(derivative, {.threads = 1});
          expect_near(entries(executable->run(inputs)), expected.results.at(kind), tolerance_of(dtype, kind));
        }
      }
  }
}

TEST_P(Matrix, EveryFieldIsRightAtEverySample) {
  const std::vector<OpSupport> fields = op_support(op());
  EXPECT_EQ(fields.size(), matrix_kinds().size() * all_backends().size() * 2);
  const std::vector<Sample> samples = calls(op().samples.value);
  for (const OpSupport& field : fields) {
    // The derivative of an op that is itself a derivative may be one too many.
    if (is_second_order(field.derivative) && field.why_not.find("has no local Jacobian") != std::string::npos)
      continue;
    EXPECT_EQ(field.why_not.empty(), !samples.empty() && op().jacobian.value.rule)
        << to_string(field.derivative) << " " << field.backend << " " << to_string(field.dtype) << ": "
        << field.why_not;
  }
  if (!fields[0].why_not.empty()) return;
  for (const Sample& sample : samples) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ": " + print_call(op(), sample));
    check_call(op(), sample, fields);
    if (HasFailure()) return;
  }
}

/// The Jacobian by the table's row, as the program around the call has it, and its products
/// with directions and weights of 1: sums of its rows and of its columns.
std::map<DerivativeKind, std::vector<double>> results_of(const SingularPoint& row, const Sample& sample,
                                                         std::size_t outputs) {
  std::map<DerivativeKind, std::vector<double>> results;
  std::vector<double>& jacobian = results[DerivativeKind::jacobian];
  std::vector<double>& pushed = results[DerivativeKind::jvp];
  std::vector<double>& pulled = results[DerivativeKind::vjp];
  pushed.assign(outputs, 0);
  for (std::size_t k = 0; k < sample.operands.size(); ++k) {
    if (!is_floating(sample.operands[k].dtype())) continue;
    const std::size_t columns = row.derivatives[k].size() / outputs, first = pulled.size();
    pulled.resize(first + columns, 0);
    for (std::size_t e = 0; e < row.derivatives[k].size(); ++e) {
      const double entry = row.derivatives[k][e] == 0 ? 0 : -2 * row.derivatives[k][e];
      jacobian.push_back(entry);
      pushed[e / columns] += entry;
      pulled[first + e % columns] += entry;
    }
  }
  return results;
}

Tensor ones(const TensorType& type) {
  Tensor tensor(type);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, 1);
  return tensor;
}

/// Whether rounding leaves the operands where they are: 3e200 is infinite in f32.
bool exists_in(const Sample& sample, DType dtype) {
  for (const Tensor& operand : sample.operands) {
    if (!is_floating(operand.dtype())) continue;
    const Tensor rounded = operand.converted(dtype);
    for (std::int64_t i = 0; i < operand.element_count(); ++i)
      if ((rounded.at(i) == 0) != (operand.at(i) == 0) ||
          std::isinf(rounded.at(i)) != std::isinf(operand.at(i)))
        return false;
  }
  return true;
}

/// First derivatives by the table of docs/theory/singular_points.md, in every field. Second
/// ones are no convention there.
TEST_P(Matrix, EveryFieldFollowsTheTableAtSpecialPoints) {
  static const auto table = read_singular_points(LOIPE_SOURCE_DIR "/docs/theory/singular_points.md");
  if (!op().jacobian.value.rule) return;
  for (const Sample& sample : calls(op().special_points)) {
    SCOPED_TRACE(print_call(op(), sample));
    const auto row = table.find(print_call(op(), sample));
    ASSERT_NE(row, table.end());
    for (DType dtype : {DType::f32, DType::f64}) {
      if (!exists_in(sample, dtype)) continue;
      const Sample rounded = loipe::in_dtype(sample, dtype);
      const Program program = *program_around(op(), rounded);
      const TensorType out = program.type(program.outputs()[0]);
      for (const auto& [kind, expected] :
           results_of(row->second, sample, static_cast<std::size_t>(out.element_count())))
        for (const std::string order : kOrders) {
          const Program derivative = run_passes(derivative_program(kind, program, order));
          std::vector<Tensor> inputs = arguments_around(rounded);
          for (std::size_t i = inputs.size(); i < derivative.arguments().size(); ++i)
            inputs.push_back(ones(derivative.type(derivative.arguments()[i])));
          for (const Backend* backend : all_backends()) {
            SCOPED_TRACE(to_string(kind) + " " + order + " " + std::string(backend->name()) + " " +
                         std::string(to_string(dtype)));
            expect_near(entries(backend->compile(derivative, {.threads = 1})->run(inputs)), expected,
                        ops::relative_tolerance(Tolerance::function, dtype));
          }
        }
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<const OpDef*>& info) {
  return std::string(info.param->name.value);
}

INSTANTIATE_TEST_SUITE_P(AllOps, Matrix, ::testing::ValuesIn(all_ops().begin(), all_ops().end()), test_name);

}  // namespace
}  // namespace loipe::testing
