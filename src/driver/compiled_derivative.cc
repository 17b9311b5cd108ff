// SPDX-License-Identifier: Apache-2.0
#include "driver/compiled_derivative.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/saturated.h"
#include "driver/derivative_options.h"

namespace loipe {

namespace {

/// Bytes of the inputs and results of all examples but one.
std::size_t bytes_of_others(std::span<const TensorType> arguments, std::span<const TensorType> outputs,
                            std::int64_t batch, const std::vector<bool>& is_shared) {
  std::size_t example = 0;
  for (std::size_t i = 0; i < is_shared.size(); ++i)
    if (!is_shared[i]) example += arguments[i].byte_size();
  for (const TensorType& type : outputs) example += type.byte_size();
  return saturated_product(example, static_cast<std::size_t>(batch - 1));
}

BlockValues block_values(BlockFormat format) {
  if (format == BlockFormat::coo) return BlockValues::entries;
  return format == BlockFormat::structured ? BlockValues::terms : BlockValues::all;
}

CompileOptions compile_options(const DerivativeOptions& options) {
  return {.backend = options.backend,
          .backend_options = {.threads = options.threads,
                              .memory_limit = options.memory_limit,
                              .batch = options.batch,
                              .flush_subnormals = options.flush_subnormals},
          .recomputes = options.recompute,
          .reports_attention = options.attention_reports,
          .block_values = block_values(options.format)};
}

std::vector<TensorType> types_of(const Program& program, std::span<const Value> values) {
  std::vector<TensorType> types;
  for (Value value : values) types.push_back(program.type(value));
  return types;
}

TensorType with_axis(TensorType type, std::int64_t examples) {
  type.shape.insert(type.shape.begin(), examples);
  return type;
}

template <class T>
void check_dtype(const NamedType& tensor, const char* what) {
  if (tensor.type.dtype != dtype_of<T>())
    throw UserError(std::string(what) + " '" + tensor.name + "' is " + to_string(tensor.type) +
                    ", but the run is on spans of " + std::string(to_string(dtype_of<T>())));
}

}  // namespace

CompiledDerivative::CompiledDerivative(DerivativeKind kind, Program primal, const DerivativeOptions& options,
                                       Beside beside)
    : primal_(std::move(primal)),
      request_(resolve_request(kind, primal_, options, beside)),
      signature_(signature_of(request_, primal_, types_of(primal_, primal_.arguments()),
                              types_of(primal_, primal_.outputs()))),
      batch_(options.batch),
      is_shared_(resolve_shared(primal_, signature_, options)) {
  CompileOptions compiling = compile_options(options);
  compiling.reserved_bytes = [&](const Program& optimised) {
    return bytes_of_others(types_of(optimised, optimised.arguments()),
                           types_of(optimised, optimised.outputs()), batch_, is_shared_);
  };
  derivative_ = compile_derivative(primal_, request_, compiling);
  const Compilation& c = compilation();
  cost_ = {c.accumulation.cost.multiplications, c.accumulation.cost.additions,
           c.folded.multiplications + c.folded.divisions, c.folded.additions};
}

std::size_t CompiledDerivative::peak_bytes() const {
  return saturated_sum(
      executable().peak_bytes(),
      bytes_of_others(executable().argument_types(), executable().output_types(), batch_, is_shared_));
}

SparsePattern CompiledDerivative::pattern(std::size_t index) const {
  const std::vector<SparsePattern>& known = compilation().patterns;
  if (!known.empty()) return known[index];
  const std::size_t columns = request_.wrt.size();
  return block_pattern(plan().program, plan().request, compilation().accumulation, index / columns,
                       index % columns);
}

/// The examples that the inputs hold.
std::int64_t CompiledDerivative::batch_extent(std::span<const Tensor> inputs) const {
  if (inputs.size() != signature_.inputs.size())
    throw UserError("a batch wants " + std::to_string(signature_.inputs.size()) + " arguments, got " +
                    std::to_string(inputs.size()));
  std::optional<std::int64_t> examples;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& own = signature_.inputs[i].type;
    const TensorType& given = inputs[i].type();
    if (!is_shared_[i] && !examples && given.rank() == own.rank() + 1) examples = given.shape[0];
    const TensorType expected = is_shared_[i] ? own : with_axis(own, examples.value_or(batch_));
    if (given != expected)
      throw UserError(std::string(is_shared_[i] ? "the shared argument '" : "argument '") +
                      signature_.inputs[i].name + "' is " + to_string(given) + ", expected " +
                      to_string(expected) +
                      (is_shared_[i] ? "" : ": all examples, as in the other arguments"));
  }
  return examples.value_or(batch_);
}

std::vector<Tensor> CompiledDerivative::run_batch(std::span<const Tensor> inputs) const {
  if (executable().output_types().size() > signature_.results.size())
    throw UserError("a batch returns no reports of attention; compile without attention_reports");
  const std::int64_t examples = batch_extent(inputs);
  std::vector<ConstBytes> in;
  for (const Tensor& input : inputs) in.push_back(input.bytes());
  std::vector<Tensor> results;
  std::vector<Bytes> out;
  for (const TensorType& type : executable().output_types()) results.emplace_back(with_axis(type, examples));
  for (Tensor& result : results) out.push_back(result.bytes());
  executable().run_batch(examples, in, is_shared_, out);
  return results;
}

/// As bytes, in vectors that have had the room since their first run.
template <class T>
void CompiledDerivative::fill(RunBytes& bytes, Spans<const T> inputs,
                              std::initializer_list<Spans<T>> results) const {
  std::size_t count = 0;
  for (const Spans<T>& group : results) count += group.size();
  const std::size_t expected = executable().output_types().size();
  if (count != expected)
    throw UserError("a run wants " + std::to_string(expected) + " result spans, got " +
                    std::to_string(count));
  for (const NamedType& input : signature_.inputs) check_dtype<T>(input, "argument");
  for (const NamedType& result : signature_.results) check_dtype<T>(result, "result");
  bytes.inputs.clear();
  bytes.results.clear();
  for (const std::span<const T>& input : inputs) bytes.inputs.push_back(std::as_bytes(input));
  for (const Spans<T>& group : results)
    for (const std::span<T>& target : group) bytes.results.push_back(std::as_writable_bytes(target));
}

template <class T>
void CompiledDerivative::run(Spans<const T> inputs, std::initializer_list<Spans<T>> results) const {
  const auto bytes = bytes_.take();
  fill<T>(*bytes, inputs, results);
  executable().run(bytes->inputs, bytes->results);
}

template <class T>
void CompiledDerivative::run_batch(std::int64_t examples, Spans<const T> inputs,
                                   std::initializer_list<Spans<T>> results,
                                   const BatchLayouts& layouts) const {
  const auto bytes = bytes_.take();
  fill<T>(*bytes, inputs, results);
  executable().run_batch(examples, bytes->inputs, is_shared_, bytes->results, layouts);
}

#define LOIPE_INSTANTIATE(T)                                                                       \
  template void CompiledDerivative::run<T>(Spans<const T>, std::initializer_list<Spans<T>>) const; \
  template void CompiledDerivative::run_batch<T>(                                                  \
      std::int64_t, Spans<const T>, std::initializer_list<Spans<T>>, const BatchLayouts&) const;
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

void check_index(std::size_t i, std::size_t count, const char* what) {
  if (i >= count)
    throw UserError(std::string(what) + " " + std::to_string(i) + " is asked for, but there are " +
                    std::to_string(count) + ", numbered from 0");
}

}  // namespace loipe
