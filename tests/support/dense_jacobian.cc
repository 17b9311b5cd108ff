// SPDX-License-Identifier: Apache-2.0
#include "support/dense_jacobian.h"

#include <cmath>
#include <limits>
#include <map>

#include "ir/builder.h"
#include "ir/interpreter.h"
#include "jacobian/materialize.h"

namespace loipe::testing {

namespace {

using Matrix = std::vector<double>;

/// Dense d(node)/d(operand) at the arguments.
Matrix local_matrix(const Program& program, const std::vector<Tensor>& arguments, Value node,
                    std::size_t operand) {
  Builder builder(program);
  JacobianContext context{builder, node, operand};
  const LocalJacobian jacobian = program.op(node).jacobian.value.rule(context);
  const Value dense = materialize(builder, jacobian, program.shape(node),
                                  program.shape(program.operands(node)[operand]), DType::f64);
  const Tensor result = evaluate(builder.finish({dense}), arguments)[0];
  Matrix matrix;
  for (std::int64_t i = 0; i < result.element_count(); ++i) matrix.push_back(result.at(i));
  return matrix;
}

/// a (m x k) * b (k x n) added to c (m x n).
void multiply_add(const Matrix& a, const Matrix& b, Matrix& c, std::size_t m, std::size_t k, std::size_t n) {
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
}

}  // namespace

std::vector<Tensor> dense_jacobian(const Program& program, const std::vector<Tensor>& arguments,
                                   const std::vector<std::size_t>& wrt) {
  auto size = [&](Value v) { return static_cast<std::size_t>(program.type(v).element_count()); };
  std::vector<std::vector<Tensor>> columns;
  for (std::size_t position : wrt) {
    const Value argument = program.arguments()[position];
    const std::size_t n = size(argument);
    std::map<Value, Matrix> tangents;
    Matrix identity(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) identity[i * n + i] = 1;
    tangents[argument] = identity;
    for (std::uint32_t i = 0; i < program.size(); ++i) {
      const auto operands = program.operands(Value{i});
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const auto inner = tangents.find(operands[k]);
        if (inner == tangents.end() || !is_floating(program.type(Value{i}).dtype)) continue;
        Matrix& outer = tangents.try_emplace(Value{i}, Matrix(size(Value{i}) * n, 0.0)).first->second;
        multiply_add(local_matrix(program, arguments, Value{i}, k), inner->second, outer, size(Value{i}),
                     size(operands[k]), n);
      }
    }
    columns.emplace_back();
    for (Value output : program.outputs()) {
      Shape shape = program.shape(output);
      shape.insert(shape.end(), program.shape(argument).begin(), program.shape(argument).end());
      Tensor block(TensorType{DType::f64, shape});
      if (auto found = tangents.find(output); found != tangents.end())
        for (std::size_t e = 0; e < found->second.size(); ++e)
          block.set(static_cast<std::int64_t>(e), found->second[e]);
      columns.back().push_back(std::move(block));
    }
  }
  std::vector<Tensor> blocks;
  for (std::size_t output = 0; output < program.outputs().size(); ++output)
    for (auto& column : columns) blocks.push_back(column[output]);
  return blocks;
}

double relative_deviation(const Tensor& value, const Tensor& reference, double floor) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.shape() != reference.shape()) return kInfinity;
  double top = floor, worst = 0;
  for (std::int64_t i = 0; i < value.element_count(); ++i) {
    const double a = value.at(i), b = reference.at(i);
    if (std::isnan(a) != std::isnan(b)) return kInfinity;
    if (std::isfinite(b)) top = std::max(top, std::abs(b));
    if (a != b && !std::isnan(a)) worst = std::max(worst, std::abs(a - b));
  }
  return worst / top;
}

}  // namespace loipe::testing
