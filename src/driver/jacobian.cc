// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include "driver/compiled_derivative.h"
#include "driver/emit_source.h"
#include "frontends/trace.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace loipe {

const char* version() { return LOIPE_VERSION; }

struct Jacobian::Compiled : CompiledDerivative {
  using CompiledDerivative::CompiledDerivative;
};

namespace {

Jacobian compile_jacobian(Program primal, const DerivativeOptions& options) {
  return Jacobian(std::make_shared<Jacobian::Compiled>(DerivativeKind::jacobian, std::move(primal), options,
                                                       Beside::values));
}

/// Outputs, then blocks, output by output.
JacobianResult sorted_results(std::vector<Tensor> all, const CompiledDerivative& compiled) {
  JacobianResult result;
  const std::size_t outputs = compiled.primal().outputs().size(), columns = compiled.request().wrt.size();
  auto next = all.begin();
  const auto take = [&](std::size_t count) {
    const auto first = std::exchange(next, next + static_cast<std::ptrdiff_t>(count));
    return std::vector<Tensor>(std::move_iterator(first), std::move_iterator(next));
  };
  result.outputs = take(outputs);
  const std::vector<StructuredBlock>& structures = compiled.compilation().structures;
  for (std::size_t i = 0; i < compiled.request().of.size(); ++i) {
    if (structures.empty()) {
      result.blocks.push_back(take(columns));
      continue;
    }
    result.terms.emplace_back();
    for (std::size_t k = 0; k < columns; ++k)
      result.terms.back().push_back(take(structures[i * columns + k].tensor_types.size()));
  }
  return result;
}

/// What spans cannot say by themselves.
void check_counts(const CompiledDerivative& compiled, std::size_t outputs, std::size_t blocks) {
  const std::size_t expected_outputs = compiled.primal().outputs().size();
  const std::size_t expected = compiled.executable().output_types().size() - expected_outputs;
  if (outputs != expected_outputs || blocks != expected)
    throw UserError("a run wants " + std::to_string(expected_outputs) + " output and " +
                    std::to_string(expected) + " block spans, got " + std::to_string(outputs) + " and " +
                    std::to_string(blocks));
}

void check_block(const Jacobian& jacobian, std::size_t i, std::size_t k) {
  check_index(i, jacobian.of().size(), "the block of differentiated output");
  check_index(k, jacobian.wrt().size(), "the block of differentiated argument");
}

}  // namespace

std::size_t Jacobian::argument_count() const { return compiled_->primal().arguments().size(); }
std::size_t Jacobian::output_count() const { return compiled_->primal().outputs().size(); }
const std::string& Jacobian::argument_name(std::size_t i) const {
  check_index(i, argument_count(), "argument");
  return compiled_->primal().argument_name(i);
}
const TensorType& Jacobian::argument_type(std::size_t i) const {
  check_index(i, argument_count(), "argument");
  const Program& primal = compiled_->primal();
  return primal.type(primal.arguments()[i]);
}
const TensorType& Jacobian::output_type(std::size_t i) const {
  check_index(i, output_count(), "output");
  const Program& primal = compiled_->primal();
  return primal.type(primal.outputs()[i]);
}
std::span<const std::size_t> Jacobian::wrt() const { return compiled_->request().wrt; }
std::span<const std::size_t> Jacobian::of() const { return compiled_->request().of; }
const JacobianCost& Jacobian::cost() const { return compiled_->cost(); }
std::size_t Jacobian::peak_bytes() const { return compiled_->peak_bytes(); }
bool Jacobian::is_shared(std::size_t i) const {
  check_index(i, argument_count(), "argument");
  return compiled_->is_shared(i);
}
bool Jacobian::vectorises_examples() const { return compiled_->executable().vectorises_examples(); }
const std::vector<int>& Jacobian::order() const { return compiled_->request().order.vertices; }
std::string Jacobian::program_text() const { return program_to_text(compiled_->compilation().optimised); }
CSource Jacobian::c_source(const std::string& function) const {
  return loipe::c_source(*compiled_, function);
}

SparsePattern Jacobian::block_pattern(std::size_t i, std::size_t k) const {
  check_block(*this, i, k);
  return compiled_->pattern(i * wrt().size() + k);
}

const StructuredBlock& Jacobian::structure(std::size_t i, std::size_t k) const {
  const std::vector<StructuredBlock>& structures = compiled_->compilation().structures;
  if (structures.empty())
    throw UserError(
        "the structured form of a block is asked for, but the Jacobian was not compiled with "
        "BlockFormat::structured");
  check_block(*this, i, k);
  return structures[i * wrt().size() + k];
}

TensorType Jacobian::block_type(std::size_t i, std::size_t k) const {
  check_block(*this, i, k);
  if (!compiled_->compilation().structures.empty())
    throw UserError("a structured block has no one type: ask Jacobian::structure for those of its tensors");
  return compiled_->executable().output_types()[output_count() + i * wrt().size() + k];
}

JacobianResult Jacobian::operator()(std::span<const Tensor> arguments) const {
  return sorted_results(compiled_->run(arguments), *compiled_);
}

JacobianResult Jacobian::run_batch(std::span<const Tensor> arguments) const {
  return sorted_results(compiled_->run_batch(arguments), *compiled_);
}

template <class T>
void Jacobian::run(std::span<const std::span<const T>> arguments, std::span<const std::span<T>> outputs,
                   std::span<const std::span<T>> blocks) const {
  check_counts(*compiled_, outputs.size(), blocks.size());
  compiled_->run<T>(arguments, {outputs, blocks});
}

template <class T>
void Jacobian::run_batch(std::int64_t examples, std::span<const std::span<const T>> arguments,
                         std::span<const std::span<T>> outputs, std::span<const std::span<T>> blocks,
                         const BatchLayouts& layouts) const {
  check_counts(*compiled_, outputs.size(), blocks.size());
  compiled_->run_batch<T>(examples, arguments, {outputs, blocks}, layouts);
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
