// SPDX-License-Identifier: Apache-2.0
#include "driver/task_jacobian.h"

#include <algorithm>

#include "base/text.h"

namespace loipe {

namespace {

std::vector<std::size_t> resolve_wrt(const Program& program, const std::vector<std::string>& names) {
  if (names.empty()) return floating_arguments(program);
  std::vector<std::size_t> positions;
  for (const std::string& name : names) {
    const std::size_t position = program.argument_position(name);
    if (std::ranges::find(positions, position) != positions.end())
      throw UserError("--wrt names argument '" + name + "' twice");
    positions.push_back(position);
  }
  return positions;
}

/// The part of one example in a tensor of `parts` equal parts.
template <class Byte>
std::span<Byte> part_of(std::span<Byte> bytes, std::int64_t part, std::int64_t parts) {
  const std::size_t size = bytes.size() / static_cast<std::size_t>(parts);
  return bytes.subspan(static_cast<std::size_t>(part) * size, size);
}

void check_types(std::span<const Tensor> tensors, std::span<const TensorType> types, const char* what) {
  if (tensors.size() != types.size())
    throw UserError("a run has " + std::to_string(types.size()) + " " + what + ", got " +
                    std::to_string(tensors.size()));
  for (std::size_t i = 0; i < types.size(); ++i)
    if (tensors[i].type() != types[i])
      throw UserError(std::string(what) + " " + std::to_string(i) + ": expected " + to_string(types[i]) +
                      ", got " + to_string(tensors[i].type()));
}

std::size_t total_bytes(std::span<const TensorType> types) {
  std::size_t total = 0;
  for (const TensorType& type : types) total += type.byte_size();
  return total;
}

}  // namespace

TaskJacobian::TaskJacobian(const Subject& subject, const TaskJacobianOptions& options)
    : program_(subject.program(options.dtype)), batch_(options.batch) {
  order_ = subject_order(options.order, subject, program_);
  wrt_ = resolve_wrt(program_, options.wrt);
  compilation_ = compile(program_, {.request = {wrt_, order_, batch_.program_axis()},
                                    .passes = {},
                                    .backend = options.backend,
                                    .backend_options = {options.threads, options.memory_limit}});
  const Executable& executable = *compilation_.executable;
  input_types_ = batch_.argument_types(program_);
  for (const TensorType& type : executable.output_types()) result_types_.push_back(batch_.result_type(type));
  if (options.memory_limit > 0 && peak_bytes() > options.memory_limit)
    throw ResourceError("'" + subject.name() + "' with " + std::to_string(batch_.examples) +
                        " examples needs " + with_thousands(static_cast<std::int64_t>(peak_bytes())) +
                        " bytes, but --memory-limit is " +
                        with_thousands(static_cast<std::int64_t>(options.memory_limit)));
}

std::string TaskJacobian::result_name(std::size_t i) const {
  if (i < output_count()) return "out." + std::to_string(i);
  const std::size_t block = i - output_count();
  return "jac." + std::to_string(block / wrt_.size()) + "." +
         program_.argument_name(wrt_[block % wrt_.size()]);
}

std::size_t TaskJacobian::peak_bytes() const {
  const Executable& executable = *compilation_.executable;
  // The executable's own peak has the inputs and results of one example in it.
  const std::size_t others = total_bytes(input_types_) + total_bytes(result_types_) -
                             total_bytes(executable.argument_types()) -
                             total_bytes(executable.output_types());
  return executable.peak_bytes() + others;
}

std::vector<Tensor> TaskJacobian::run(std::span<const Tensor> inputs, const BatchProgress& progress) const {
  std::vector<Tensor> results(result_types_.begin(), result_types_.end());
  run(inputs, results, progress);
  return results;
}

void TaskJacobian::run(std::span<const Tensor> inputs, std::span<Tensor> results,
                       const BatchProgress& progress) const {
  check_types(inputs, input_types_, "inputs");
  check_types(results, result_types_, "results");
  const std::int64_t runs = batch_.kind == BatchPlan::Kind::loop ? batch_.examples : 1;
  std::vector<ConstBytes> arguments(inputs.size());
  std::vector<Bytes> outputs(results.size());
  for (std::int64_t run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_own = runs > 1 && batch_.is_batched(i);
      arguments[i] = is_own ? part_of(inputs[i].bytes(), run, runs) : inputs[i].bytes();
    }
    for (std::size_t i = 0; i < results.size(); ++i) outputs[i] = part_of(results[i].bytes(), run, runs);
    compilation_.executable->run(arguments, outputs);
    if (progress) progress(run + 1, runs);
  }
}

}  // namespace loipe
