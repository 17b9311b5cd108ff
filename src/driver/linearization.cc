// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include "driver/derivative_options.h"
#include "driver/split_program.h"
#include "frontends/trace.h"
#include "ir/printer.h"

namespace loipe {

/// One of the two programs.
struct CompiledProgram {
  Program program;
  std::unique_ptr<Executable> executable;

  CompiledProgram(const Program& source, const DerivativeOptions& options)
      : program(run_passes(source)),
        executable(find_backend(options.backend)
                       .compile(program, {.threads = options.threads,
                                          .memory_limit = options.memory_limit,
                                          .flush_subnormals = options.flush_subnormals})) {}
};

struct Linearization::Compiled {
  CompiledProgram point, linear;
  std::size_t value_count;
};

namespace {

void check_options(DerivativeKind kind, const DerivativeOptions& options) {
  if (kind != DerivativeKind::jvp && kind != DerivativeKind::vjp)
    throw UserError("a linearization is a jvp or a vjp, not a " + to_string(kind));
  if (options.batch != 1 || !options.shared.empty())
    throw Unsupported(
        "a linearization of a batch is not supported; give the examples an axis of the function, or use jvp "
        "and vjp with a batch");
}

}  // namespace

Linearization::Point Linearization::at(std::span<const Tensor> arguments) const {
  std::vector<Tensor> all = compiled_->point.executable->run(arguments);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(compiled_->value_count);
  return {{std::make_move_iterator(all.begin()), std::make_move_iterator(middle)},
          {std::make_move_iterator(middle), std::make_move_iterator(all.end())}};
}

std::vector<Tensor> Linearization::apply(const Point& point, std::span<const Tensor> seeds) const {
  std::vector<Tensor> inputs = point.residuals;
  inputs.insert(inputs.end(), seeds.begin(), seeds.end());
  return compiled_->linear.executable->run(inputs);
}

std::string Linearization::point_program_text() const { return program_to_text(compiled_->point.program); }
std::string Linearization::linear_program_text() const { return program_to_text(compiled_->linear.program); }

Linearization linearization_of_function(DerivativeKind kind, const TracedFunction& function,
                                        std::span<const Argument> arguments,
                                        const DerivativeOptions& options) {
  check_options(kind, options);
  const Program primal = trace("main", arguments, function);
  const DerivativeRequest request = resolve_request(kind, primal, options, Beside::values);
  const Program whole = compile_derivative(primal, request, {}, false).compilation.optimised;
  const SplitProgram split = split_program(whole, primal.arguments().size(), primal.outputs().size());
  return Linearization(std::make_shared<Linearization::Compiled>(
      Linearization::Compiled{{split.early, options}, {split.late, options}, primal.outputs().size()}));
}

}  // namespace loipe
