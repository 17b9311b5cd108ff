// SPDX-License-Identifier: Apache-2.0
#include "passes/uniform_values.h"

#include <cstring>

#include "ops/op_list.h"

namespace loipe::passes {

namespace {

bool only_moves_elements(const OpDef& op) {
  return &op == &ops::op_broadcast_in_dim || &op == &ops::op_reshape || &op == &ops::op_transpose ||
         &op == &ops::op_slice;
}

std::optional<double> number_of(const Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  const std::size_t size = size_of(tensor.dtype());
  if (bytes.empty()) return std::nullopt;
  // All equal the first one if each equals the one before it.
  if (std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0) return std::nullopt;
  return tensor.at(0);
}

}  // namespace

std::optional<double> UniformValues::of(const Program& program, Value value) {
  while (known_.size() <= value.index) {
    const Value next{static_cast<std::uint32_t>(known_.size())};
    if (&program.op(next) == &ops::op_constant)
      known_.push_back(number_of(program.attributes(next).tensor("value")));
    else if (only_moves_elements(program.op(next))) known_.push_back(known_[program.operands(next)[0].index]);
    else known_.push_back(std::nullopt);
  }
  return known_[value.index];
}

}  // namespace loipe::passes
