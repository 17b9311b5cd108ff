// SPDX-License-Identifier: Apache-2.0
#include "driver/input_tensors.h"

#include <algorithm>

#include "base/text.h"

namespace loipe {

namespace {

const std::string kPrefix = "in.";

/// The commonest mistake with a batch: not to say that there is one.
std::string batch_hint(const Shape& stored, const Shape& wanted) {
  const bool has_one_more =
      stored.size() == wanted.size() + 1 && std::equal(wanted.begin(), wanted.end(), stored.begin() + 1);
  return has_one_more
             ? " (--batch " + std::to_string(stored[0]) + " says that the first axis is one of examples)"
             : "";
}

/// Array libraries like to turn a scalar into one element along one axis.
bool is_fitting_shape(const Shape& stored, const Shape& wanted) {
  return stored == wanted || (wanted.empty() && stored == Shape{1});
}

Tensor with_shape(const Tensor& tensor, const Shape& shape) {
  Tensor result({tensor.dtype(), shape});
  std::ranges::copy(tensor.bytes(), result.bytes().begin());
  return result;
}

void check_stored(const SafetensorsFile& file, const std::string& where, const std::string& name,
                  const TensorType& wanted) {
  if (!file.has(name))
    throw UserError(where + " holds no tensor " + quote(name) + did_you_mean(name, file.names()) +
                    ", expected " + to_string(wanted));
  const TensorType stored = file.type(name);
  const bool is_fitting_dtype =
      is_floating(wanted.dtype) ? is_floating(stored.dtype) : stored.dtype == wanted.dtype;
  if (!is_fitting_dtype)
    throw UserError("tensor " + quote(name) + " of " + where + " is " + to_string(stored) + ", expected " +
                    (is_floating(wanted.dtype) ? "a floating dtype (f32 or f64)"
                                               : "dtype " + std::string(to_string(wanted.dtype))));
  if (!is_fitting_shape(stored.shape, wanted.shape))
    throw UserError("tensor " + quote(name) + " of " + where + " has shape " + to_string(stored.shape) +
                    ", expected " + to_string(wanted.shape) + batch_hint(stored.shape, wanted.shape));
}

}  // namespace

std::optional<DType> default_dtype(const SafetensorsFile& file, const Subject& subject) {
  if (subject.mixes_precisions()) return std::nullopt;
  const std::vector<std::string> names = subject.argument_names();
  std::optional<DType> widest;
  for (std::size_t i = 0; i < names.size() && widest != DType::f64; ++i) {
    const std::string name = kPrefix + names[i];
    if (!subject.is_floating_argument(i) || !file.has(name)) continue;
    if (const DType dtype = file.type(name).dtype; is_floating(dtype)) widest = dtype;
  }
  return widest;
}

std::vector<std::string> stored_batched(const SafetensorsFile& file) {
  std::vector<std::string> names;
  const auto found = file.metadata().find("batched");
  if (found == file.metadata().end()) return names;
  std::string_view rest = found->second;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma > 0) names.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

std::vector<Tensor> load_inputs(const SafetensorsFile& file, const std::string& path,
                                std::span<const std::string> names, std::span<const TensorType> types) {
  std::vector<std::string> tensors;
  for (const std::string& name : names) tensors.push_back(kPrefix + name);
  return load_tensors(file, path, tensors, types);
}

std::vector<Tensor> load_tensors(const SafetensorsFile& file, const std::string& path,
                                 std::span<const std::string> names, std::span<const TensorType> types) {
  const std::string where = "file " + quote(path);
  // All are checked before the first is read: a mistake costs no time.
  for (std::size_t i = 0; i < names.size(); ++i) check_stored(file, where, names[i], types[i]);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < names.size(); ++i)
    inputs.push_back(with_shape(file.tensor(names[i]).converted(types[i].dtype), types[i].shape));
  return inputs;
}

std::int64_t stored_directions(const SafetensorsFile& file, const TaskPlan& plan) {
  const std::vector<std::string> names = plan.tensor_names();
  for (std::size_t i = plan.program.arguments().size(); i < names.size(); ++i) {
    if (!file.has(names[i])) continue;
    const Shape stored = file.type(names[i]).shape, wanted = plan.signature.inputs[i].type.shape;
    // One element may be the scalar that array libraries store as [1]: other seeds decide.
    if (wanted.empty() && is_fitting_shape(stored, wanted)) continue;
    const bool has_axis = stored.size() == wanted.size() + 1;
    return has_axis ? stored[plan.has_examples[i] ? 1 : 0] : 0;
  }
  return 0;
}

}  // namespace loipe
