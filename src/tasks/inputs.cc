// SPDX-License-Identifier: Apache-2.0
#include "tasks/inputs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"

namespace loipe {

namespace {

bool is_batched(const Task& task, const Argument& argument) {
  return std::ranges::find(task.batched_arguments, argument.name) != task.batched_arguments.end();
}

/// Tensors of zeros in f64; batched ones have a batch axis if there is more than one
/// example, or if the program has one.
std::vector<Tensor> blank_inputs(const Task& task, const TaskOptions& options) {
  std::vector<Tensor> tensors;
  for (const Argument& argument : task.arguments(options)) {
    Shape shape = argument.type.shape;
    if (!task.has_batch_axis && options.batch > 1 && is_batched(task, argument))
      shape.insert(shape.begin(), options.batch);
    tensors.emplace_back(TensorType{DType::f64, shape});
  }
  return tensors;
}

void fill_normal(Tensor& tensor, Rng& rng, double deviation = 1) {
  for (double& element : tensor.elements<double>()) element = deviation * rng.normal();
}

void fill_network_argument(const std::string& name, Tensor& tensor, InputKind kind, Rng& rng) {
  const bool rich = kind == InputKind::rich;
  const bool is_weight_matrix = name.starts_with("W");
  if (name.starts_with("gamma")) std::ranges::fill(tensor.elements<double>(), rich ? 1.1 : 0);
  else if (name.starts_with("beta")) std::ranges::fill(tensor.elements<double>(), rich ? -0.2 : 1);
  else if (name == "x" && !rich) std::ranges::fill(tensor.elements<double>(), 1);
  else if (is_weight_matrix && rich)
    fill_normal(tensor, rng, 1 / std::sqrt(static_cast<double>(tensor.shape().back())));
  else fill_normal(tensor, rng);
}

/// The factor of one element, or of a whole example, that an example's point gets.
double factor(const InputRecipe& recipe, InputKind kind, double example_factor, Rng& rng) {
  return kind == InputKind::rich ? 1 + rng.uniform(-recipe.jitter, recipe.jitter) : example_factor;
}

/// Example by example the elements of the point, spread over the arguments.
void fill_around_point(const Task& task, std::span<Tensor> tensors, const TaskOptions& options,
                       InputKind kind, Rng& rng) {
  const InputRecipe& recipe = task.inputs;
  const bool as_published = kind == InputKind::published && !recipe.published.empty();
  const std::vector<double>& point = as_published ? recipe.published : recipe.point;
  for (std::int64_t example = 0; example < options.batch; ++example) {
    const double example_factor = example == 0 ? 1 : 1 - rng.uniform();
    std::size_t position = 0;
    for (Tensor& tensor : tensors) {
      const std::span<double> elements = tensor.elements<double>();
      const std::size_t size = elements.size() / static_cast<std::size_t>(options.batch);
      for (double& element : elements.subspan(static_cast<std::size_t>(example) * size, size))
        element = point[position++] * factor(recipe, kind, example_factor, rng);
    }
    require(position == point.size(), "the point of task '" + task.name + "' does not fit its arguments");
  }
}

}  // namespace

std::vector<Tensor> task_inputs(const Task& task, const TaskOptions& options, InputKind kind,
                                std::uint64_t seed) {
  check_options(task, options);
  Rng rng(seed);
  std::vector<Tensor> tensors = blank_inputs(task, options);
  if (task.inputs.point.empty()) {
    const std::vector<Argument> arguments = task.arguments(options);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      fill_network_argument(arguments[i].name, tensors[i], kind, rng);
  } else {
    fill_around_point(task, tensors, options, kind, rng);
  }
  for (Tensor& tensor : tensors) tensor = tensor.converted(options.dtype);
  return tensors;
}

}  // namespace loipe
