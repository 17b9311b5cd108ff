// SPDX-License-Identifier: Apache-2.0
#include <loipe/error.h>
#include <loipe/structured_block.h>

#include <functional>

#include "base/text.h"
#include "jacobian/coordinate.h"

namespace loipe {

namespace {

std::int64_t element(const std::vector<std::size_t>& labels, const std::vector<std::int64_t>& extents,
                     std::span<const std::int64_t> at) {
  std::int64_t flat = 0;
  for (std::size_t label : labels) flat = flat * extents[label] + at[label];
  return flat;
}

/// The flat position of an entry in a tensor of `shape`; -1 when it is outside.
std::int64_t flat_position(const std::vector<StructuredAxis>& axes, const Shape& shape,
                           const StructuredTerm& term, std::span<const Tensor> tensors,
                           std::span<const std::int64_t> at) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const StructuredAxis& axis = axes[i];
    std::int64_t position = axis.offset;
    for (const StructuredAxis::Stride& s : axis.strides) position += s.stride * at[s.label];
    if (axis.table_tensor >= 0)
      position = static_cast<std::int64_t>(tensors[static_cast<std::size_t>(axis.table_tensor)].at(
          element(axis.table_labels, term.extents, at)));
    else if (!axis.table.empty())
      position = axis.table[static_cast<std::size_t>(element(axis.table_labels, term.extents, at))];
    if (position < 0 || position >= shape[i]) return -1;
    flat = flat * shape[i] + position;
  }
  return flat;
}

using VisitEntry = std::function<void(std::int64_t out, std::int64_t in, double value)>;

/// Every stored entry, those of different terms at one position one after the other.
void for_each_entry(const StructuredBlock& block, std::span<const Tensor> tensors, const VisitEntry& visit) {
  for (const StructuredTerm& term : block.terms) {
    std::vector<Label> labels;
    for (std::size_t label = 0; label < term.extents.size(); ++label)
      labels.push_back(static_cast<Label>(label));
    for_each_assignment(labels, term.extents, [&](std::span<const std::int64_t> at) {
      const std::int64_t out = flat_position(term.out, block.out, term, tensors, at);
      const std::int64_t in = flat_position(term.in, block.in, term, tensors, at);
      if (out < 0 || in < 0) return;
      double value = term.coefficient;
      if (term.value_tensor >= 0)
        value *= tensors[static_cast<std::size_t>(term.value_tensor)].at(
            element(term.value_labels, term.extents, at));
      visit(out, in, value);
    });
  }
}

void check(const StructuredBlock& block, std::span<const Tensor> tensors) {
  if (tensors.size() != block.tensor_types.size())
    throw UserError("the structured block has " + std::to_string(block.tensor_types.size()) +
                    " tensors, got " + std::to_string(tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].type() != block.tensor_types[i])
      throw UserError("tensor " + std::to_string(i) + " of the structured block is " +
                      to_string(tensors[i].type()) + ", expected " + to_string(block.tensor_types[i]));
}

void check_vector(const Tensor& vector, const Shape& shape, const char* what) {
  if (vector.shape() != shape || !is_floating(vector.dtype()))
    throw UserError("the vector is " + to_string(vector.type()) + ", expected floating numbers of shape " +
                    to_string(shape) + ", that of the block's " + what);
}

std::string text_of(const StructuredAxis& axis) {
  const auto labels = [&] {
    std::vector<std::string> names;
    for (std::size_t label : axis.table_labels) names.push_back(label_name(static_cast<Label>(label)));
    return "[" + join(names, ",") + "]";
  };
  if (axis.table_tensor >= 0) return "#" + std::to_string(axis.table_tensor) + labels();
  if (!axis.table.empty()) {
    std::vector<std::string> numbers;
    for (std::int64_t number : axis.table) numbers.push_back(std::to_string(number));
    return "[" + join(numbers, ",") + "]" + labels();
  }
  Coordinate coordinate = Coordinate::fixed(axis.offset);
  for (const StructuredAxis::Stride& s : axis.strides)
    coordinate.strides.push_back({static_cast<Label>(s.label), s.stride});
  return print_coordinates(std::span(&coordinate, 1));
}

}  // namespace

std::int64_t StructuredBlock::stored_elements() const {
  std::int64_t count = 0;
  for (const StructuredTerm& term : terms)
    count +=
        term.value_tensor < 0 ? 1 : tensor_types[static_cast<std::size_t>(term.value_tensor)].element_count();
  return count;
}

Tensor densify(const StructuredBlock& block, std::span<const Tensor> tensors) {
  check(block, tensors);
  Shape shape = block.out;
  shape.insert(shape.end(), block.in.begin(), block.in.end());
  Tensor dense(TensorType{DType::f64, shape});
  const std::int64_t columns = element_count(block.in);
  for_each_entry(block, tensors, [&](std::int64_t out, std::int64_t in, double value) {
    dense.set(out * columns + in, dense.at(out * columns + in) + value);
  });
  return dense.converted(block.dtype);
}

Tensor multiply(const StructuredBlock& block, std::span<const Tensor> tensors, const Tensor& v) {
  check(block, tensors);
  check_vector(v, block.in, "argument");
  Tensor result(TensorType{DType::f64, block.out});
  for_each_entry(block, tensors, [&](std::int64_t out, std::int64_t in, double value) {
    result.set(out, result.at(out) + value * v.at(in));
  });
  return result.converted(block.dtype);
}

Tensor multiply_transposed(const StructuredBlock& block, std::span<const Tensor> tensors, const Tensor& u) {
  check(block, tensors);
  check_vector(u, block.out, "output");
  Tensor result(TensorType{DType::f64, block.in});
  for_each_entry(block, tensors, [&](std::int64_t out, std::int64_t in, double value) {
    result.set(in, result.at(in) + value * u.at(out));
  });
  return result.converted(block.dtype);
}

std::string to_string(const StructuredTerm& term) {
  std::vector<std::string> out, in, extents, labels;
  for (const StructuredAxis& axis : term.out) out.push_back(text_of(axis));
  for (const StructuredAxis& axis : term.in) in.push_back(text_of(axis));
  for (std::size_t label = 0; label < term.extents.size(); ++label)
    extents.push_back(label_name(static_cast<Label>(label)) + "<" + std::to_string(term.extents[label]));
  std::string value = format_double(term.coefficient);
  if (term.value_tensor >= 0) {
    for (std::size_t label : term.value_labels) labels.push_back(label_name(static_cast<Label>(label)));
    value = (term.coefficient < 0 ? "-#" : "#") + std::to_string(term.value_tensor) + "[" +
            join(labels, ",") + "]";
  }
  return "(" + join(out, ", ") + " | " + join(in, ", ") + ")" + (extents.empty() ? "" : " ") +
         join(extents, ", ") + " : " + value;
}

std::string to_string(const StructuredBlock& block) {
  std::vector<std::string> terms;
  for (const StructuredTerm& term : block.terms) terms.push_back(to_string(term));
  return to_string(block.out) + " by " + to_string(block.in) + ": " +
         (terms.empty() ? "zero" : join(terms, " + "));
}

}  // namespace loipe
