// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include "driver/attention_reports.h"
#include "driver/compiled_derivative.h"
#include "driver/emit_source.h"
#include "frontends/trace.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace loipe {

struct Derivative::Compiled : CompiledDerivative {
  using CompiledDerivative::CompiledDerivative;
};

namespace {

Derivative compile_derivative(DerivativeKind kind, Program primal, const DerivativeOptions& options,
                              Beside beside) {
  return Derivative(std::make_shared<Derivative::Compiled>(kind, std::move(primal), options, beside));
}

DerivativeResult sorted_results(std::vector<Tensor> all, const DerivativeSignature& signature) {
  DerivativeResult result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= signature.results.size()) {
      result.attention.push_back(report_of(all[i]));
      continue;
    }
    std::vector<Tensor>& group = i < signature.value_count                              ? result.outputs
                                 : i < signature.value_count + signature.jacobian_count ? result.jacobian
                                                                                        : result.derivatives;
    group.push_back(std::move(all[i]));
  }
  return result;
}

}  // namespace

DerivativeKind Derivative::kind() const { return compiled_->request().kind; }
std::size_t Derivative::argument_count() const { return compiled_->signature().inputs.size(); }
const std::string& Derivative::argument_name(std::size_t i) const {
  check_index(i, argument_count(), "argument");
  return compiled_->signature().inputs[i].name;
}
const TensorType& Derivative::argument_type(std::size_t i) const {
  check_index(i, argument_count(), "argument");
  return compiled_->signature().inputs[i].type;
}
std::size_t Derivative::result_count() const { return compiled_->signature().results.size(); }
const std::string& Derivative::result_name(std::size_t i) const {
  check_index(i, result_count(), "result");
  return compiled_->signature().results[i].name;
}
TensorType Derivative::result_type(std::size_t i) const {
  check_index(i, result_count(), "result");
  return compiled_->executable().output_types()[i];
}

SparsePattern Derivative::pattern(std::size_t i) const {
  check_index(i, result_count(), "result");
  const DerivativeSignature& signature = compiled_->signature();
  const std::size_t first = signature.value_count + signature.jacobian_count;
  if (i < first || (kind() != DerivativeKind::jacobian && kind() != DerivativeKind::hessian))
    throw UserError("result '" + result_name(i) +
                    "' has no pattern: only blocks of the Jacobian or Hessian that is compiled have one");
  return compiled_->pattern(i - first);
}

const JacobianCost& Derivative::cost() const { return compiled_->cost(); }
std::size_t Derivative::peak_bytes() const { return compiled_->peak_bytes(); }
bool Derivative::is_shared(std::size_t i) const {
  check_index(i, argument_count(), "argument");
  return compiled_->is_shared(i);
}
bool Derivative::vectorises_examples() const { return compiled_->executable().vectorises_examples(); }
const std::vector<int>& Derivative::order() const { return compiled_->request().order.vertices; }
const std::vector<int>& Derivative::outer_order() const {
  static const std::vector<int> none;
  return is_second_order(kind()) ? compiled_->plan().request.order.vertices : none;
}
std::string Derivative::program_text() const { return program_to_text(compiled_->compilation().optimised); }
CSource Derivative::c_source(const std::string& function) const {
  return loipe::c_source(*compiled_, function);
}

DerivativeResult Derivative::operator()(std::span<const Tensor> arguments) const {
  return sorted_results(compiled_->run(arguments), compiled_->signature());
}

DerivativeResult Derivative::operator()(std::initializer_list<Tensor> arguments,
                                        std::initializer_list<Tensor> seeds) const {
  std::vector<Tensor> all(arguments);
  all.insert(all.end(), seeds);
  return (*this)(std::span<const Tensor>(all));
}

DerivativeResult Derivative::run_batch(std::span<const Tensor> arguments) const {
  return sorted_results(compiled_->run_batch(arguments), compiled_->signature());
}

template <class T>
void Derivative::run(std::span<const std::span<const T>> arguments,
                     std::span<const std::span<T>> results) const {
  compiled_->run<T>(arguments, {results});
}

template <class T>
void Derivative::run_batch(std::int64_t examples, std::span<const std::span<const T>> arguments,
                           std::span<const std::span<T>> results, const BatchLayouts& layouts) const {
  compiled_->run_batch<T>(examples, arguments, {results}, layouts);
}

#define LOIPE_INSTANTIATE(T)                                                                           \
  template void Derivative::run<T>(std::span<const std::span<const T>>, std::span<const std::span<T>>) \
      const;                                                                                           \
  template void Derivative::run_batch<T>(std::int64_t, std::span<const std::span<const T>>,            \
                                         std::span<const std::span<T>>, const BatchLayouts&) const;
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

Derivative derivative_of_function(DerivativeKind kind, const TracedFunction& function,
                                  std::span<const Argument> arguments, const DerivativeOptions& options,
                                  Beside beside) {
  return compile_derivative(kind, trace("main", arguments, function), options, beside);
}

Derivative derivative_of_program(DerivativeKind kind, std::string_view text, const DerivativeOptions& options,
                                 Beside beside) {
  return compile_derivative(kind, program_from_text(text), options, beside);
}

}  // namespace loipe
