// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include <algorithm>

#include "base/check.h"
#include "driver/pipeline.h"
#include "frontends/trace.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace loipe {

const char* version() { return LOIPE_VERSION; }

struct Jacobian::Compiled {
  Program primal;
  std::vector<std::size_t> wrt;
  std::vector<int> order;
  JacobianCost cost;
  Compilation compilation;
};

namespace {

std::size_t position_of(const Program& program, const ArgumentRef& ref) {
  if (const auto* name = std::get_if<std::string>(&ref)) return program.argument_position(*name);
  const int position = std::get<int>(ref);
  if (position < 0 || static_cast<std::size_t>(position) >= program.arguments().size())
    throw UserError("wrt position " + std::to_string(position) + ": the function has " +
                    std::to_string(program.arguments().size()) + " arguments, numbered from 0");
  return static_cast<std::size_t>(position);
}

std::vector<std::size_t> resolve_wrt(const Program& program, const std::vector<ArgumentRef>& refs) {
  if (refs.empty()) return floating_arguments(program);
  std::vector<std::size_t> positions;
  for (const ArgumentRef& ref : refs) positions.push_back(position_of(program, ref));
  return positions;
}

Jacobian compile_jacobian(Program primal, const JacobianOptions& options) {
  if (options.threads < 0)
    throw UserError("threads is " + std::to_string(options.threads) + ", expected 0 (all cores) or more");
  auto compiled = std::make_shared<Jacobian::Compiled>();
  compiled->primal = std::move(primal);
  compiled->wrt = resolve_wrt(compiled->primal, options.wrt);
  const EliminationOrder order = resolve_order(options.order, compiled->primal, "");
  compiled->order = order.vertices;
  compiled->compilation =
      compile(compiled->primal, {.request = {compiled->wrt, order, {}},
                                 .passes = {},
                                 .backend = options.backend,
                                 .backend_options = {options.threads, options.memory_limit}});
  const Compilation& c = compiled->compilation;
  compiled->cost = {c.accumulation.cost.multiplications, c.accumulation.cost.additions,
                    c.folded.multiplications + c.folded.divisions, c.folded.additions};
  return Jacobian(std::move(compiled));
}

template <class T>
void check_dtype(const TensorType& type, const std::string& what) {
  if (type.dtype != dtype_of<T>())
    throw UserError(what + " is " + to_string(type) + ", but the run is on spans of " +
                    std::string(to_string(dtype_of<T>())));
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
std::size_t Jacobian::peak_bytes() const { return compiled_->compilation.executable->peak_bytes(); }
const std::vector<int>& Jacobian::order() const { return compiled_->order; }
std::string Jacobian::program_text() const { return program_to_text(compiled_->compilation.optimised); }

TensorType Jacobian::block_type(std::size_t i, std::size_t k) const {
  TensorType type = output_type(i);
  const Shape& in = argument_type(compiled_->wrt[k]).shape;
  type.shape.insert(type.shape.end(), in.begin(), in.end());
  return type;
}

JacobianResult Jacobian::operator()(std::span<const Tensor> arguments) const {
  std::vector<Tensor> all = compiled_->compilation.executable->run(arguments);
  JacobianResult result;
  auto next = all.begin();
  for (std::size_t i = 0; i < output_count(); ++i) result.outputs.push_back(std::move(*next++));
  for (std::size_t i = 0; i < output_count(); ++i) {
    result.blocks.emplace_back();
    for (std::size_t k = 0; k < compiled_->wrt.size(); ++k)
      result.blocks.back().push_back(std::move(*next++));
  }
  return result;
}

template <class T>
void Jacobian::run(std::span<const std::span<const T>> arguments, std::span<const std::span<T>> outputs,
                   std::span<const std::span<T>> blocks) const {
  if (outputs.size() != output_count() || blocks.size() != output_count() * compiled_->wrt.size())
    throw UserError("a run wants " + std::to_string(output_count()) + " output and " +
                    std::to_string(output_count() * compiled_->wrt.size()) + " block spans, got " +
                    std::to_string(outputs.size()) + " and " + std::to_string(blocks.size()));
  for (std::size_t i = 0; i < argument_count(); ++i)
    check_dtype<T>(argument_type(i), "argument '" + argument_name(i) + "'");
  for (std::size_t i = 0; i < output_count(); ++i)
    check_dtype<T>(output_type(i), "output " + std::to_string(i));
  std::vector<ConstBytes> in;
  for (const std::span<const T>& argument : arguments) in.push_back(std::as_bytes(argument));
  std::vector<Bytes> out;
  for (auto group : {outputs, blocks})
    for (const std::span<T>& target : group) out.push_back(std::as_writable_bytes(target));
  compiled_->compilation.executable->run(in, out);
}

template void Jacobian::run<float>(std::span<const std::span<const float>>, std::span<const std::span<float>>,
                                   std::span<const std::span<float>>) const;
template void Jacobian::run<double>(std::span<const std::span<const double>>,
                                    std::span<const std::span<double>>,
                                    std::span<const std::span<double>>) const;

Jacobian jacobian_of_function(const TracedFunction& function, std::span<const Argument> arguments,
                              const JacobianOptions& options) {
  return compile_jacobian(trace("main", arguments, function), options);
}

Jacobian jacobian_of_program(std::string_view text, const JacobianOptions& options) {
  return compile_jacobian(program_from_text(text), options);
}

}  // namespace loipe
