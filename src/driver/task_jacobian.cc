// SPDX-License-Identifier: Apache-2.0
#include "driver/task_jacobian.h"

#include <algorithm>

#include "base/check.h"
#include "driver/derivative_options.h"

namespace loipe {

namespace {

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

CompileOptions compile_options(const TaskJacobianOptions& options, std::int64_t batch) {
  return {.request = {},
          .passes = {},
          .disabled = options.disabled,
          .backend = options.backend,
          .backend_options = {.threads = options.threads,
                              .memory_limit = options.memory_limit,
                              .batch = batch,
                              .flush_subnormals = options.flush_subnormals,
                              .use_code_cache = options.use_code_cache},
          .block_values = options.block_values,
          .reserved_bytes = {}};
}

std::size_t bytes_of(const Program& program, std::span<const Value> values) {
  std::size_t total = 0;
  for (Value value : values) total += program.type(value).byte_size();
  return total;
}

/// Bytes of the inputs and results of all examples, beyond those of the one that `program` is for.
std::size_t bytes_of_others(const Program& program, std::span<const TensorType> input_types,
                            std::int64_t examples) {
  return total_bytes(input_types) - bytes_of(program, program.arguments()) +
         static_cast<std::size_t>(examples - 1) * bytes_of(program, program.outputs());
}

EliminationOrder order_of(const Subject& subject, const TaskJacobianOptions& options, const Program& program,
                          const DerivativeRequest& request) {
  return subject_order(options.order.empty() ? default_order(options.kind) : options.order, subject,
                       differentiated(program, request.kind, request.of));
}

/// Examples do not mix, so the Jacobian of a program with a batch axis can also be run
/// example by example at extent 1; that pays where the back end vectorises over examples.
/// Null, and nothing is compiled, where it does not.
std::unique_ptr<Executable> compile_per_example(const Subject& subject, const TaskJacobianOptions& options,
                                                std::span<const TensorType> input_types,
                                                DerivativeRequest request) {
  const BatchPlan& batch = options.batch;
  if (batch.examples < 2) return nullptr;
  const Backend& backend = find_backend(options.backend);
  const Program one = one_example(subject).program(options.dtype);
  request.order = order_of(subject, options, one, request);
  CompileOptions compiling = compile_options(options, batch.examples);
  BackendOptions backend_options = options_of_back_end(compiling);
  const Program optimised = compile_derivative(one, request, compiling, false).compilation.optimised;
  if (!backend.vectorises_examples(optimised, backend_options)) return nullptr;
  backend_options.reserved_bytes = bytes_of_others(optimised, input_types, batch.examples);
  return backend.compile(optimised, backend_options);
}

}  // namespace

TaskJacobian::TaskJacobian(const Subject& subject, const TaskJacobianOptions& options)
    : plan_(plan_task(subject, options)), batch_(options.batch), input_types_(plan_.input_types()) {
  plan_.request.order = order_of(subject, options, plan_.program, plan_.request);
  const bool is_structured = options.block_values == BlockValues::terms;
  if (batch_.kind == BatchPlan::Kind::axis && !plan_.runs_each_example && !is_structured)
    per_example_ = compile_per_example(subject, options, input_types_, plan_.request);
  CompileOptions compiling = compile_options(options, plan_.runs_each_example ? batch_.examples : 1);
  if (plan_.runs_each_example)
    compiling.reserved_bytes = [&](const Program& optimised) {
      return bytes_of_others(optimised, input_types_, batch_.examples);
    };
  derivative_ = compile_derivative(plan_.program, plan_.request, compiling, per_example_ == nullptr);
  const Program& optimised = compilation().optimised;
  if (is_structured) name_terms();
  for (std::size_t i = 0; i < plan_.signature.results.size(); ++i)
    result_types_.push_back(result_type(i, options, optimised.type(optimised.outputs()[i])));
}

/// The results are then the tensors of all terms in place of the blocks.
void TaskJacobian::name_terms() {
  DerivativeSignature& signature = plan_.signature;
  for (std::size_t i = signature.value_count; i < signature.results.size(); ++i)
    block_names_.push_back(signature.results[i].name);
  signature.results.resize(signature.value_count);
  std::vector<StructuredBlock>& blocks = derivative_.compilation.structures;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    if (batch_.kind == BatchPlan::Kind::squeeze) {  // the caller sees no axis of the one example
      blocks[block].out.erase(blocks[block].out.begin());
      for (StructuredTerm& term : blocks[block].terms) term.out.erase(term.out.begin());
    }
    for (std::size_t k = 0; k < blocks[block].tensor_types.size(); ++k)
      signature.results.push_back(
          {block_names_[block] + "." + std::to_string(k), blocks[block].tensor_types[k]});
  }
}

/// The caller's type of a result, from the program's.
TensorType TaskJacobian::result_type(std::size_t i, const TaskJacobianOptions& options,
                                     const TensorType& in_program) const {
  const bool is_of_term = !structures().empty() && i >= plan_.signature.value_count;
  if (is_of_term && !plan_.runs_each_example) return in_program;
  if (options.kind == DerivativeKind::jacobian) return batch_.result_type(in_program);
  if (options.block_values == BlockValues::all || !has_pattern(i)) return dense_type(i);
  TensorType entries = in_program;
  if (batch_.has_caller_axis()) entries.shape.insert(entries.shape.begin(), batch_.examples);
  return entries;
}

const EliminationOrder* TaskJacobian::outer_order() const {
  return is_second_order(plan_.request.kind) ? &derivative_.plan.request.order : nullptr;
}

bool TaskJacobian::has_pattern(std::size_t i) const {
  const DerivativeKind kind = plan_.request.kind;
  return structures().empty() && i >= plan_.signature.value_count + plan_.signature.jacobian_count &&
         (kind == DerivativeKind::jacobian || kind == DerivativeKind::hessian);
}

SparsePattern TaskJacobian::pattern(std::size_t i) const {
  require(has_pattern(i), "a result without a pattern is asked for one");
  const std::size_t block = i - plan_.signature.value_count - plan_.signature.jacobian_count;
  if (!compilation().patterns.empty()) return compilation().patterns[block];
  return block_pattern(derivative_.plan.program, derivative_.plan.request, compilation().accumulation,
                       block / wrt().size(), block % wrt().size());
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
  if (plan_.runs_each_example) return run_examples(executable(), inputs, results, progress);
  std::vector<ConstBytes> arguments;
  std::vector<Bytes> outputs;
  for (const Tensor& input : inputs) arguments.push_back(input.bytes());
  for (Tensor& result : results) outputs.push_back(result.bytes());
  executable().run(arguments, outputs);
  if (progress) progress(1, 1);
}

/// In pieces, so that progress shows and an interrupt is noticed.
void TaskJacobian::run_examples(const Executable& executable, std::span<const Tensor> inputs,
                                std::span<Tensor> results, const BatchProgress& progress) const {
  const std::int64_t examples = batch_.examples;
  const std::int64_t piece = !progress ? examples : executable.vectorises_examples() ? 16384 : 1;
  std::vector<bool> is_shared;
  for (bool has_axis : plan_.has_examples) is_shared.push_back(!has_axis);
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
