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

/// Examples first..first+count-1 in a tensor of `examples` equal parts.
template <class Byte>
std::span<Byte> examples_of(std::span<Byte> bytes, std::int64_t first, std::int64_t count,
                            std::int64_t examples) {
  const std::size_t size = examples == 0 ? 0 : bytes.size() / static_cast<std::size_t>(examples);
  return bytes.subspan(static_cast<std::size_t>(first) * size, static_cast<std::size_t>(count) * size);
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

std::int64_t loop_examples(const BatchPlan& batch) {
  return batch.kind == BatchPlan::Kind::loop ? batch.examples : 1;
}

CompileOptions compile_options(const TaskJacobianOptions& options, AccumulationRequest request,
                               std::int64_t batch) {
  return {.request = std::move(request),
          .passes = {},
          .backend = options.backend,
          .backend_options = {.threads = options.threads,
                              .memory_limit = options.memory_limit,
                              .batch = batch,
                              .flush_subnormals = options.flush_subnormals,
                              .use_code_cache = options.use_code_cache},
          .block_values = options.block_values,
          .reserved_bytes = {}};
}

/// Inputs and results of all examples, beyond those of the one that runs.
std::size_t bytes_of_other_examples(const Program& primal, const Program& optimised, const BatchPlan& batch) {
  std::size_t bytes = total_bytes(batch.argument_types(primal));
  for (Value argument : primal.arguments()) bytes -= primal.type(argument).byte_size();
  for (Value output : optimised.outputs()) {
    const TensorType& type = optimised.type(output);
    bytes += batch.result_type(type).byte_size() - type.byte_size();
  }
  return bytes;
}

/// Examples do not mix, so a program with a batch axis can also be run example by
/// example at extent 1; that pays where the back end vectorises over examples. Null, and
/// nothing is compiled, where it does not.
std::unique_ptr<Executable> compile_per_example(const Subject& subject, const TaskJacobianOptions& options,
                                                const std::vector<std::size_t>& wrt, const BatchPlan& batch) {
  if (batch.examples < 2) return nullptr;
  const Backend& backend = find_backend(options.backend);
  const std::optional<std::int64_t> scale =
      subject.task()->has_scale ? std::optional(subject.scale()) : std::nullopt;
  const Program one = Subject({subject.name(), scale, 1}).program(options.dtype);
  CompileOptions compiling = compile_options(
      options, {wrt, subject_order(options.order, subject, one), batch.program_axis()}, batch.examples);
  compiling.backend_options.memory_limit = 0;  // that of all examples is checked later
  const Program optimised = accumulate_and_optimise(one, compiling).optimised;
  if (!backend.vectorises_examples(optimised)) return nullptr;
  return backend.compile(optimised, compiling.backend_options);
}

}  // namespace

TaskJacobian::TaskJacobian(const Subject& subject, const TaskJacobianOptions& options)
    : program_(subject.program(options.dtype)), batch_(options.batch) {
  order_ = subject_order(options.order, subject, program_);
  wrt_ = resolve_wrt(program_, options.wrt);
  if (batch_.kind == BatchPlan::Kind::axis)
    per_example_ = compile_per_example(subject, options, wrt_, batch_);
  CompileOptions compiling =
      compile_options(options, {wrt_, order_, batch_.program_axis()}, loop_examples(batch_));
  if (batch_.kind == BatchPlan::Kind::loop)
    compiling.reserved_bytes = [&](const Program& optimised) {
      return bytes_of_other_examples(program_, optimised, batch_);
    };
  compilation_ = per_example_ ? accumulate_and_optimise(program_, compiling) : compile(program_, compiling);
  input_types_ = batch_.argument_types(program_);
  for (Value output : compilation_.optimised.outputs())
    result_types_.push_back(batch_.result_type(compilation_.optimised.type(output)));
  if (options.memory_limit > 0 && peak_bytes() > options.memory_limit)
    throw ResourceError("'" + subject.name() + "' with " + std::to_string(batch_.examples) +
                        " examples needs " + std::to_string(peak_bytes()) + " bytes, but --memory-limit is " +
                        std::to_string(options.memory_limit));
}

std::string TaskJacobian::result_name(std::size_t i) const {
  if (i < output_count()) return "out." + std::to_string(i);
  const std::size_t block = i - output_count();
  return "jac." + std::to_string(block / wrt_.size()) + "." +
         program_.argument_name(wrt_[block % wrt_.size()]);
}

Shape TaskJacobian::block_shape(std::size_t i) const {
  const std::size_t argument = wrt_[i % wrt_.size()];
  const Value output = program_.outputs()[i / wrt_.size()];
  Shape shape = batch_.result_type(program_.type(output)).shape;
  const Shape& in = program_.shape(program_.arguments()[argument]);
  const bool has_axis = !batch_.program_axis().empty() && batch_.program_axis()[argument];
  shape.insert(shape.end(), in.begin() + (has_axis ? 1 : 0), in.end());
  return shape;
}

std::size_t TaskJacobian::peak_bytes() const {
  // The executable's own peak has the inputs and results of one example in it.
  const std::size_t others = total_bytes(input_types_) + total_bytes(result_types_) -
                             total_bytes(executable().argument_types()) -
                             total_bytes(executable().output_types());
  return executable().peak_bytes() + others;
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
  if (per_example_) return run_examples(*per_example_, inputs, results, progress);
  if (batch_.kind == BatchPlan::Kind::loop)
    return run_examples(*compilation_.executable, inputs, results, progress);
  std::vector<ConstBytes> arguments;
  std::vector<Bytes> outputs;
  for (const Tensor& input : inputs) arguments.push_back(input.bytes());
  for (Tensor& result : results) outputs.push_back(result.bytes());
  compilation_.executable->run(arguments, outputs);
  if (progress) progress(1, 1);
}

/// In pieces, so that progress shows and an interrupt is noticed.
void TaskJacobian::run_examples(const Executable& executable, std::span<const Tensor> inputs,
                                std::span<Tensor> results, const BatchProgress& progress) const {
  const std::int64_t examples = batch_.examples;
  const std::int64_t piece = !progress ? examples : executable.vectorises_examples() ? 16384 : 1;
  std::vector<bool> is_shared;
  for (std::size_t i = 0; i < inputs.size(); ++i) is_shared.push_back(!batch_.is_batched(i));
  std::vector<ConstBytes> arguments(inputs.size());
  std::vector<Bytes> outputs(results.size());
  for (std::int64_t first = 0; first < examples; first += piece) {
    const std::int64_t count = std::min(piece, examples - first);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      arguments[i] =
          is_shared[i] ? inputs[i].bytes() : examples_of(inputs[i].bytes(), first, count, examples);
    for (std::size_t i = 0; i < results.size(); ++i)
      outputs[i] = examples_of(results[i].bytes(), first, count, examples);
    executable.run_batch(count, arguments, is_shared, outputs);
    if (progress) progress(first + count, examples);
  }
}

}  // namespace loipe
