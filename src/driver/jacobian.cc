// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include <algorithm>

#include "base/check.h"
#include "base/pool.h"
#include "base/saturated.h"
#include "driver/pipeline.h"
#include "frontends/trace.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace loipe {

const char* version() { return LOIPE_VERSION; }

namespace {

/// The spans of one run, prepared once and used again.
struct Spans {
  std::vector<ConstBytes> arguments;
  std::vector<Bytes> results;
};

}  // namespace

struct Jacobian::Compiled {
  Program primal;
  std::int64_t batch = 1;
  std::vector<bool> is_shared;
  Pool<Spans> spans;
  std::vector<std::size_t> wrt;
  std::vector<int> order;
  JacobianCost cost;
  Compilation compilation;
};

namespace {

std::size_t position_of(const Program& program, const ArgumentRef& ref, const char* what) {
  if (const auto* name = std::get_if<std::string>(&ref)) return program.argument_position(*name);
  const int position = std::get<int>(ref);
  if (position < 0 || static_cast<std::size_t>(position) >= program.arguments().size())
    throw UserError(std::string(what) + " position " + std::to_string(position) + ": the function has " +
                    std::to_string(program.arguments().size()) + " arguments, numbered from 0");
  return static_cast<std::size_t>(position);
}

std::vector<std::size_t> resolve_wrt(const Program& program, const std::vector<ArgumentRef>& refs) {
  if (refs.empty()) return floating_arguments(program);
  std::vector<std::size_t> positions;
  for (const ArgumentRef& ref : refs) positions.push_back(position_of(program, ref, "wrt"));
  return positions;
}

std::vector<bool> resolve_shared(const Program& program, const std::vector<ArgumentRef>& refs) {
  std::vector<bool> is_shared(program.arguments().size(), false);
  for (const ArgumentRef& ref : refs) is_shared[position_of(program, ref, "shared")] = true;
  return is_shared;
}

/// The executable's own peak has the arguments and results of one example in it.
std::size_t batch_peak_bytes(const Executable& executable, std::int64_t batch,
                             const std::vector<bool>& is_shared) {
  std::size_t example = 0;
  for (std::size_t i = 0; i < is_shared.size(); ++i)
    if (!is_shared[i]) example += executable.argument_types()[i].byte_size();
  for (const TensorType& type : executable.output_types()) example += type.byte_size();
  return saturated_sum(executable.peak_bytes(),
                       saturated_product(example, static_cast<std::size_t>(batch - 1)));
}

void check_options(const JacobianOptions& options) {
  if (options.threads < 0)
    throw UserError("threads is " + std::to_string(options.threads) + ", expected 0 (all cores) or more");
  if (options.batch < 1)
    throw UserError("batch is " + std::to_string(options.batch) + ", expected 1 or more examples");
}

Jacobian compile_jacobian(Program primal, const JacobianOptions& options) {
  check_options(options);
  auto compiled = std::make_shared<Jacobian::Compiled>();
  compiled->primal = std::move(primal);
  compiled->wrt = resolve_wrt(compiled->primal, options.wrt);
  compiled->batch = options.batch;
  compiled->is_shared = resolve_shared(compiled->primal, options.shared);
  const EliminationOrder order = resolve_order(options.order, compiled->primal, "");
  compiled->order = order.vertices;
  compiled->compilation =
      compile(compiled->primal,
              {.request = {compiled->wrt, order, {}},
               .passes = {},
               .backend = options.backend,
               .backend_options = {.threads = options.threads,
                                   .memory_limit = options.memory_limit,
                                   .batch = options.batch,
                                   .flush_subnormals = options.flush_subnormals},
               .block_values = options.format == BlockFormat::coo ? BlockValues::entries : BlockValues::all});
  const Compilation& c = compiled->compilation;
  compiled->cost = {c.accumulation.cost.multiplications, c.accumulation.cost.additions,
                    c.folded.multiplications + c.folded.divisions, c.folded.additions};
  const std::size_t peak = batch_peak_bytes(*c.executable, options.batch, compiled->is_shared);
  if (options.memory_limit > 0 && peak > options.memory_limit)
    throw ResourceError("program '" + compiled->primal.name() + "' with a batch of " +
                        std::to_string(options.batch) + " examples needs " + std::to_string(peak) +
                        " bytes, but the memory limit is " + std::to_string(options.memory_limit) + " bytes");
  return Jacobian(std::move(compiled));
}

template <class T>
[[noreturn]] void refuse_dtype(const TensorType& type, const std::string& what) {
  throw UserError(what + " is " + to_string(type) + ", but the run is on spans of " +
                  std::string(to_string(dtype_of<T>())));
}

TensorType with_axis(TensorType type, std::int64_t examples) {
  type.shape.insert(type.shape.begin(), examples);
  return type;
}

/// The examples that the arguments hold.
std::int64_t batch_extent(const Jacobian& jacobian, std::span<const Tensor> arguments,
                          std::int64_t default_batch) {
  if (arguments.size() != jacobian.argument_count())
    throw UserError("a batch wants " + std::to_string(jacobian.argument_count()) + " arguments, got " +
                    std::to_string(arguments.size()));
  std::optional<std::int64_t> examples;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const TensorType& own = jacobian.argument_type(i);
    const TensorType& given = arguments[i].type();
    if (!jacobian.is_shared(i) && !examples && given.rank() == own.rank() + 1) examples = given.shape[0];
    const TensorType expected =
        jacobian.is_shared(i) ? own : with_axis(own, examples.value_or(default_batch));
    if (given != expected)
      throw UserError(std::string(jacobian.is_shared(i) ? "the shared argument '" : "argument '") +
                      jacobian.argument_name(i) + "' is " + to_string(given) + ", expected " +
                      to_string(expected) +
                      (jacobian.is_shared(i) ? "" : ": all examples, as in the other arguments"));
  }
  return examples.value_or(default_batch);
}

}  // namespace

std::size_t Jacobian::argument_count() const { return compiled_->primal.arguments().size(); }
std::size_t Jacobian::output_count() const { return compiled_->primal.outputs().size(); }
const std::string& Jacobian::argument_name(std::size_t i) const { return compiled_->primal.argument_name(i); }
const TensorType& Jacobian::argument_type(std::size_t i) const {
  return compiled_->primal.type(compiled_->primal.arguments()[i]);
}
const TensorType& Jacobian::output_type(std::size_t i) const {
  return compiled_->primal.type(compiled_->primal.outputs()[i]);
}
std::span<const std::size_t> Jacobian::wrt() const { return compiled_->wrt; }
const JacobianCost& Jacobian::cost() const { return compiled_->cost; }
std::size_t Jacobian::peak_bytes() const {
  return batch_peak_bytes(*compiled_->compilation.executable, compiled_->batch, compiled_->is_shared);
}
bool Jacobian::is_shared(std::size_t i) const { return compiled_->is_shared[i]; }
bool Jacobian::vectorises_examples() const {
  return compiled_->compilation.executable->vectorises_examples();
}
const std::vector<int>& Jacobian::order() const { return compiled_->order; }
std::string Jacobian::program_text() const { return program_to_text(compiled_->compilation.optimised); }

SparsePattern Jacobian::block_pattern(std::size_t i, std::size_t k) const {
  const std::vector<SparsePattern>& known = compiled_->compilation.patterns;
  if (!known.empty()) return known[i * wrt().size() + k];
  AccumulationRequest request;
  request.wrt = compiled_->wrt;
  return loipe::block_pattern(compiled_->primal, request, compiled_->compilation.accumulation, i, k);
}

TensorType Jacobian::block_type(std::size_t i, std::size_t k) const {
  const std::vector<SparsePattern>& entries = compiled_->compilation.patterns;
  if (!entries.empty()) return {output_type(i).dtype, {entries[i * wrt().size() + k].entry_count()}};
  TensorType type = output_type(i);
  const Shape& in = argument_type(compiled_->wrt[k]).shape;
  type.shape.insert(type.shape.end(), in.begin(), in.end());
  return type;
}

namespace {

/// Outputs, then blocks, output by output.
JacobianResult sorted_results(std::vector<Tensor> all, std::size_t outputs, std::size_t wrt) {
  JacobianResult result;
  auto next = all.begin();
  for (std::size_t i = 0; i < outputs; ++i) result.outputs.push_back(std::move(*next++));
  for (std::size_t i = 0; i < outputs; ++i) {
    result.blocks.emplace_back();
    for (std::size_t k = 0; k < wrt; ++k) result.blocks.back().push_back(std::move(*next++));
  }
  return result;
}

/// Checks what spans cannot say by themselves.
template <class T>
void check_spans(const Jacobian& jacobian, std::size_t outputs, std::size_t blocks) {
  const std::size_t expected = jacobian.output_count() * jacobian.wrt().size();
  if (outputs != jacobian.output_count() || blocks != expected)
    throw UserError("a run wants " + std::to_string(jacobian.output_count()) + " output and " +
                    std::to_string(expected) + " block spans, got " + std::to_string(outputs) + " and " +
                    std::to_string(blocks));
  for (std::size_t i = 0; i < jacobian.argument_count(); ++i)
    if (jacobian.argument_type(i).dtype != dtype_of<T>())
      refuse_dtype<T>(jacobian.argument_type(i), "argument '" + jacobian.argument_name(i) + "'");
  for (std::size_t i = 0; i < jacobian.output_count(); ++i)
    if (jacobian.output_type(i).dtype != dtype_of<T>())
      refuse_dtype<T>(jacobian.output_type(i), "output " + std::to_string(i));
}

/// As bytes, in vectors that have had the room since their first run.
template <class T>
void fill(Spans& spans, std::span<const std::span<const T>> arguments, std::span<const std::span<T>> outputs,
          std::span<const std::span<T>> blocks) {
  spans.arguments.clear();
  spans.results.clear();
  for (const std::span<const T>& argument : arguments) spans.arguments.push_back(std::as_bytes(argument));
  for (auto group : {outputs, blocks})
    for (const std::span<T>& target : group) spans.results.push_back(std::as_writable_bytes(target));
}

}  // namespace

JacobianResult Jacobian::operator()(std::span<const Tensor> arguments) const {
  return sorted_results(compiled_->compilation.executable->run(arguments), output_count(), wrt().size());
}

template <class T>
void Jacobian::run(std::span<const std::span<const T>> arguments, std::span<const std::span<T>> outputs,
                   std::span<const std::span<T>> blocks) const {
  check_spans<T>(*this, outputs.size(), blocks.size());
  const auto spans = compiled_->spans.take();
  fill(*spans, arguments, outputs, blocks);
  compiled_->compilation.executable->run(spans->arguments, spans->results);
}

template <class T>
void Jacobian::run_batch(std::int64_t examples, std::span<const std::span<const T>> arguments,
                         std::span<const std::span<T>> outputs, std::span<const std::span<T>> blocks,
                         const BatchLayouts& layouts) const {
  check_spans<T>(*this, outputs.size(), blocks.size());
  const auto spans = compiled_->spans.take();
  fill(*spans, arguments, outputs, blocks);
  compiled_->compilation.executable->run_batch(examples, spans->arguments, compiled_->is_shared,
                                               spans->results, layouts);
}

JacobianResult Jacobian::run_batch(std::span<const Tensor> arguments) const {
  const Executable& executable = *compiled_->compilation.executable;
  const std::int64_t examples = batch_extent(*this, arguments, compiled_->batch);
  std::vector<ConstBytes> in;
  for (const Tensor& argument : arguments) in.push_back(argument.bytes());
  std::vector<Tensor> all;
  std::vector<Bytes> out;
  for (const TensorType& type : executable.output_types()) all.emplace_back(with_axis(type, examples));
  for (Tensor& result : all) out.push_back(result.bytes());
  executable.run_batch(examples, in, compiled_->is_shared, out);
  return sorted_results(std::move(all), output_count(), wrt().size());
}

#define LOIPE_INSTANTIATE(T)                                                                         \
  template void Jacobian::run<T>(std::span<const std::span<const T>>, std::span<const std::span<T>>, \
                                 std::span<const std::span<T>>) const;                               \
  template void Jacobian::run_batch<T>(std::int64_t, std::span<const std::span<const T>>,            \
                                       std::span<const std::span<T>>, std::span<const std::span<T>>, \
                                       const BatchLayouts&) const;
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

Jacobian jacobian_of_function(const TracedFunction& function, std::span<const Argument> arguments,
                              const JacobianOptions& options) {
  return compile_jacobian(trace("main", arguments, function), options);
}

Jacobian jacobian_of_program(std::string_view text, const JacobianOptions& options) {
  return compile_jacobian(program_from_text(text), options);
}

}  // namespace loipe
