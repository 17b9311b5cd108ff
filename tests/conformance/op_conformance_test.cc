// SPDX-License-Identifier: Apache-2.0
// Walks the list of ops. What an op's record claims must hold at its samples: types
// and values in both floating dtypes, local Jacobians against differences, and the
// conventions at its special points against the table of docs/theory/singular_points.md.
#include <gtest/gtest.h>

#include <set>

#include "differences.h"
#include "driver/op_support.h"
#include "ir/builder.h"
#include "ir/interpreter.h"
#include "ir/program.h"
#include "jacobian/local_jacobian.h"
#include "jacobian/materialize.h"
#include "ops/tolerance.h"
#include "singular_points.h"

namespace loipe::testing {
namespace {

constexpr std::uint64_t kSeed = 20240607;

/// Half the distance that samples keep from kinks and jumps is larger than this.
constexpr double kStep = 0.1;

/// Ops whose Jacobian is not their derivative, by definition.
const std::set<std::string_view> kNotTheDerivative{"stop_gradient"};

Tensor call(const OpDef& op, const Sample& sample) {
  std::vector<const TensorType*> types;
  std::vector<const Tensor*> operands;
  for (const Tensor& operand : sample.operands) {
    types.push_back(&operand.type());
    operands.push_back(&operand);
  }
  const TensorType type = infer_type(op, types, sample.attributes);
  Tensor result = op.evaluate.value({operands, sample.attributes, type});
  EXPECT_EQ(to_string(result.type()), to_string(type)) << "inferred and evaluated type differ";
  EXPECT_GE(op.cost.value({types, sample.attributes, type}).total(), 0);
  return result;
}

std::vector<double> entries(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.at(i));
  return result;
}

bool is_near(double actual, double expected, double tolerance) {
  if (std::isnan(expected) || std::isinf(expected) || tolerance == 0)
    return actual == expected || (std::isnan(actual) && std::isnan(expected));
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(is_near(actual[i], expected[i], tolerance))
        << "entry " << i << " is " << actual[i] << ", expected " << expected[i];
}

/// How the operands that are not differentiated by are given.
enum class Others { arguments, constants };

/// The local Jacobian of the call by one operand.
struct Linearized {
  Builder builder;
  std::vector<Tensor> arguments;
  Value node;
  LocalJacobian jacobian;

  Linearized(const OpDef& op, const Sample& sample, std::size_t operand_index, Others others) {
    std::vector<Value> operands;
    for (std::size_t k = 0; k < sample.operands.size(); ++k) {
      if (k != operand_index && others == Others::constants) {
        operands.push_back(builder.constant(sample.operands[k]));
        continue;
      }
      operands.push_back(builder.argument("x" + std::to_string(k), sample.operands[k].type()));
      arguments.push_back(sample.operands[k]);
    }
    node = builder.emit(op, operands, sample.attributes);
    JacobianContext context{builder, node, operand_index};
    jacobian = op.jacobian.value.rule(context);
  }

  /// Its entries, row-major over the axes of the result, then of the operand.
  Tensor materialized(const TensorType& operand) {
    const TensorType out = builder.type(node);
    const Value dense = materialize(builder, jacobian, out.shape, operand.shape, out.dtype);
    Shape shape = out.shape;
    shape.insert(shape.end(), operand.shape.begin(), operand.shape.end());
    EXPECT_EQ(to_string(builder.shape(dense)), to_string(shape));
    const Program program = builder.finish({dense});
    return evaluate(program, arguments)[0];
  }
};

/// d(call)/d(operand) by differences, in the layout of Linearized::materialized.
std::vector<double> difference_jacobian(const OpDef& op, const Sample& sample, std::size_t operand_index) {
  const std::size_t rows = static_cast<std::size_t>(call(op, sample).element_count());
  const std::size_t columns = static_cast<std::size_t>(sample.operands[operand_index].element_count());
  std::vector<double> jacobian(rows * columns);
  Sample moved = sample;
  for (std::size_t column = 0; column < columns; ++column) {
    const auto position = static_cast<std::int64_t>(column);
    const double x = sample.operands[operand_index].at(position);
    const auto curve = [&](double moved_x) {
      moved.operands[operand_index].set(position, moved_x);
      return entries(call(op, moved));
    };
    const std::vector<double> derivative = ridders_derivative(curve, x, kStep);
    moved.operands[operand_index].set(position, x);
    for (std::size_t row = 0; row < rows; ++row) jacobian[row * columns + column] = derivative[row];
  }
  return jacobian;
}

class OpConformance : public ::testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }

  /// An argument is the one op that is never called.
  bool is_argument() const { return &op() == &argument_op(); }

  std::vector<Sample> samples() const {
    Rng rng(kSeed);
    return op().samples.value(rng);
  }

  std::vector<Sample> special_points() const {
    Rng rng(kSeed);
    return op().special_points ? op().special_points(rng) : std::vector<Sample>();
  }
};

#define LOIPE_TRACE_SAMPLE(sample) \
  SCOPED_TRACE("seed " + std::to_string(kSeed) + ": " + print_call(op(), sample))

TEST_P(OpConformance, HasSamplesAndASummary) {
  EXPECT_FALSE(op().summary.value.empty());
  EXPECT_EQ(samples().empty(), is_argument());
}

TEST_P(OpConformance, TypesAgreeAndF32IsNearF64) {
  for (const Sample& sample : samples()) {
    LOIPE_TRACE_SAMPLE(sample);
    const Sample rounded = in_dtype(sample, DType::f32);
    const Tensor expected = call(op(), in_dtype(rounded, DType::f64));
    const Tensor actual = call(op(), rounded);
    EXPECT_EQ(to_string(actual.shape()), to_string(expected.shape()));
    EXPECT_EQ(is_floating(actual.dtype()), is_floating(expected.dtype()));
    const double tolerance = ops::relative_tolerance(op().tolerance, DType::f32);
    expect_near(entries(actual), entries(expected.converted(actual.dtype())), tolerance);
  }
}

TEST_P(OpConformance, RefusesUnknownAttributes) {
  if (is_argument()) return;
  Sample sample = samples().front();
  sample.attributes.set("no_such_attribute", std::int64_t{1});
  try {
    call(op(), sample);
    FAIL() << "an unknown attribute was accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_attribute"), std::string::npos) << error.what();
  }
}

TEST_P(OpConformance, JacobianEqualsDifferences) {
  if (!op().jacobian.value.rule) {
    EXPECT_FALSE(op().jacobian.value.why_not.empty());
    return;
  }
  for (const Sample& sample : samples())
    for (std::size_t k = 0; k < sample.operands.size(); ++k) {
      if (!is_floating(sample.operands[k].dtype())) continue;
      LOIPE_TRACE_SAMPLE(sample);
      SCOPED_TRACE("by operand " + std::to_string(k));
      if (!is_floating(call(op(), sample).dtype()) || kNotTheDerivative.contains(op().name)) {
        EXPECT_TRUE(Linearized(op(), sample, k, Others::arguments).jacobian.is_zero());
        continue;
      }
      const std::vector<double> expected = difference_jacobian(op(), sample, k);
      for (Others others : {Others::arguments, Others::constants}) {
        SCOPED_TRACE(others == Others::constants ? "other operands constant" : "other operands arguments");
        Linearized linearized(op(), sample, k, others);
        expect_near(entries(linearized.materialized(sample.operands[k].type())), expected, 1e-9);
      }
    }
}

TEST_P(OpConformance, JacobianInF32IsNearF64) {
  if (!op().jacobian.value.rule) return;
  for (const Sample& sample : samples())
    for (std::size_t k = 0; k < sample.operands.size(); ++k) {
      const Sample single = in_dtype(sample, DType::f32), rounded = in_dtype(single, DType::f64);
      if (!is_floating(sample.operands[k].dtype()) || !is_floating(call(op(), single).dtype())) continue;
      LOIPE_TRACE_SAMPLE(sample);
      SCOPED_TRACE("by operand " + std::to_string(k));
      const auto dense = [&](const Sample& s) {
        return entries(Linearized(op(), s, k, Others::arguments).materialized(s.operands[k].type()));
      };
      expect_near(dense(single), dense(rounded), ops::relative_tolerance(Tolerance::function, DType::f32));
    }
}

/// Numbers in the largest array that a value needs. A product of two arrays without a
/// common axis to sum needs only its factors: it is multiplied factor by factor.
std::int64_t needed_elements(const Program& program, Value value) {
  while (program.op(value).name.value == "reshape") value = program.operands(value)[0];
  if (program.op(value).name.value != "einsum") return program.type(value).element_count();
  std::int64_t largest = 0;
  for (Value factor : program.operands(value))
    largest = std::max(largest, program.type(factor).element_count());
  return largest;
}

// A rule says how axes depend on each other instead of storing zeros.
TEST_P(OpConformance, JacobianStoresNoMoreThanThePrimalValues) {
  if (!op().jacobian.value.rule) return;
  for (const Sample& sample : samples()) {
    std::int64_t largest = call(op(), sample).element_count();
    for (const Tensor& operand : sample.operands) largest = std::max(largest, operand.element_count());
    for (std::size_t k = 0; k < sample.operands.size(); ++k) {
      if (!is_floating(sample.operands[k].dtype())) continue;
      LOIPE_TRACE_SAMPLE(sample);
      const Linearized linearized(op(), sample, k, Others::arguments);
      for (const Term& term : linearized.jacobian.terms)
        if (term.value) {
          EXPECT_LE(needed_elements(linearized.builder.program(), term.value->value), largest)
              << to_string(linearized.jacobian);
        }
    }
  }
}

const std::map<std::string, SingularPoint>& singular_points() {
  static const auto table = read_singular_points(LOIPE_SOURCE_DIR "/docs/theory/singular_points.md");
  return table;
}

TEST_P(OpConformance, SpecialPointsFollowTheTable) {
  for (const Sample& sample : special_points()) {
    LOIPE_TRACE_SAMPLE(sample);
    const auto row = singular_points().find(print_call(op(), sample));
    ASSERT_NE(row, singular_points().end()) << "docs/theory/singular_points.md has no row for this call";
    const double tolerance = ops::relative_tolerance(Tolerance::arithmetic, DType::f64);
    expect_near(entries(call(op(), sample)), row->second.value, tolerance);
    ASSERT_EQ(row->second.derivatives.size(), sample.operands.size());
    for (std::size_t k = 0; k < sample.operands.size(); ++k) {
      if (!is_floating(sample.operands[k].dtype())) continue;
      for (Others others : {Others::arguments, Others::constants}) {
        SCOPED_TRACE("by operand " + std::to_string(k) +
                     (others == Others::constants ? ", others constant" : ""));
        Linearized linearized(op(), sample, k, others);
        expect_near(entries(linearized.materialized(sample.operands[k].type())), row->second.derivatives[k],
                    tolerance);
      }
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<const OpDef*>& info) {
  return std::string(info.param->name.value);
}

INSTANTIATE_TEST_SUITE_P(All, OpConformance, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         test_name);

TEST(SingularPoints, EveryRowIsASpecialPointOfAnOp) {
  std::set<std::string> calls;
  for (const OpDef* op : all_ops()) {
    Rng rng(kSeed);
    if (!op->special_points) continue;
    for (const Sample& sample : op->special_points(rng)) calls.insert(print_call(*op, sample));
  }
  EXPECT_FALSE(singular_points().empty());
  for (const auto& [call_text, point] : singular_points())
    EXPECT_TRUE(calls.contains(call_text)) << "no op has the special point " << call_text;
}

}  // namespace
}  // namespace loipe::testing
