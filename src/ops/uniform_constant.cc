// SPDX-License-Identifier: Apache-2.0
#include "ops/uniform_constant.h"

#include "ops/op_list.h"

namespace loipe::ops {

namespace {

bool only_moves_entries(const OpDef& op) {
  return &op == &op_broadcast_in_dim || &op == &op_reshape || &op == &op_transpose ||
         &op == &op_stop_gradient;
}

}  // namespace

std::optional<double> uniform_constant(const Program& program, Value value) {
  while (only_moves_entries(program.op(value))) value = program.operands(value)[0];
  if (&program.op(value) != &op_constant) return std::nullopt;
  const Tensor& tensor = program.attributes(value).tensor("value");
  const std::int64_t count = tensor.element_count();
  if (count == 0) return std::nullopt;
  const double first = tensor.at(0);
  for (std::int64_t i = 1; i < count; ++i)
    if (tensor.at(i) != first) return std::nullopt;
  if (first != first) return std::nullopt;
  return first;
}

}  // namespace loipe::ops
