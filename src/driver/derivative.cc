// SPDX-License-Identifier: Apache-2.0
#include "driver/derivative.h"

#include <algorithm>

#include "base/text.h"

namespace loipe {

namespace {

Program with_outputs(const Program& program, std::vector<Value> outputs) {
  return Builder(program).finish(std::move(outputs));
}

/// Of which outputs the values are returned.
std::vector<std::size_t> returned_outputs(const DerivativeRequest& request, std::size_t output_count) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < output_count; ++i)
    if (request.returns_values || std::ranges::find(request.of, i) == request.of.end())
      positions.push_back(i);
  return positions;
}

Shape directions_of(const DerivativeRequest& request) {
  return request.directions ? Shape{*request.directions} : Shape{};
}

AccumulationRequest with_seeds(const DerivativeRequest& request, EliminationOrder order) {
  AccumulationRequest result{request.wrt, std::move(order)};
  if (request.kind == DerivativeKind::jvp || request.kind == DerivativeKind::hvp)
    result.tangents = directions_of(request);
  if (request.kind == DerivativeKind::vjp) result.cotangents = directions_of(request);
  result.batched = request.batched;
  result.is_gradient = request.kind == DerivativeKind::gradient;
  result.is_hessian = request.kind == DerivativeKind::hessian;
  return result;
}

/// Forward pushes one direction, or one for each input, through the Jacobian's program;
/// reverse pulls one for each of its entries. Both are made, and counted.
EliminationOrder cheapest_order(const Program& program, const AccumulationRequest& request,
                                const PassOptions& passes) {
  std::optional<EliminationOrder> best;
  std::int64_t best_total = 0;
  for (EliminationOrder order : {forward_order(program), reverse_order(program)}) {
    CompileOptions options{.request = request, .passes = passes};
    options.request.order = order;
    const std::int64_t total = accumulate_and_optimise(program, options).executed.total();
    if (best && total >= best_total) continue;
    best = std::move(order);
    best_total = total;
  }
  return *best;
}

EliminationOrder outer_order(const Program& program, const DerivativeRequest& request,
                             const AccumulationRequest& accumulation, const PassOptions& passes) {
  if (!request.outer_order.empty()) return resolve_order(request.outer_order, program, "");
  return has_directions(request.kind) ? forward_order(program)
                                      : cheapest_order(program, accumulation, passes);
}

/// The Jacobian as a program of its own: outputs of the primal, then all blocks.
Program jacobian_program(const Program& primal, const Program& f, const DerivativeRequest& request,
                         const PassOptions& passes, ActualCost& cost) {
  AccumulationRequest first{request.wrt, request.order};
  first.returned = std::vector<Value>(primal.outputs().begin(), primal.outputs().end());
  Accumulation accumulation = accumulate(f, first);
  cost = accumulation.cost;
  // Simplified before it is differentiated again: what is dead has no derivative to pay for.
  return run_passes(std::move(accumulation.program), passes);
}

}  // namespace

bool is_second_order(DerivativeKind kind) {
  return kind == DerivativeKind::hessian || kind == DerivativeKind::hvp;
}

bool has_directions(DerivativeKind kind) {
  return kind == DerivativeKind::jvp || kind == DerivativeKind::vjp || kind == DerivativeKind::hvp;
}

std::string to_string(DerivativeKind kind) {
  constexpr const char* kNames[] = {"jacobian", "jvp", "vjp", "gradient", "hessian", "hvp"};
  return kNames[static_cast<std::size_t>(kind)];
}

Program differentiated(const Program& primal, DerivativeKind kind, const std::vector<std::size_t>& of) {
  const std::size_t count = primal.outputs().size();
  std::vector<bool> is_chosen(count, false);
  std::vector<Value> outputs;
  for (std::size_t i : of) {
    if (i >= count)
      throw UserError("output " + std::to_string(i) + " to differentiate: program '" + primal.name() +
                      "' has " + std::to_string(count) + " outputs, numbered from 0");
    if (is_chosen[i]) throw UserError("output " + std::to_string(i) + " is named twice to differentiate");
    is_chosen[i] = true;
    outputs.push_back(primal.outputs()[i]);
  }
  if (kind == DerivativeKind::gradient &&
      (outputs.size() != 1 || primal.type(outputs[0]).element_count() != 1)) {
    constexpr std::size_t kShown = 6;
    std::vector<std::string> types;
    for (Value output : std::span(outputs).first(std::min(outputs.size(), kShown)))
      types.push_back(to_string(primal.type(output)));
    if (outputs.size() > kShown) types.push_back("... (" + std::to_string(outputs.size()) + " in all)");
    throw UserError("a gradient is that of one number, but program '" + primal.name() + "' gives " +
                    (types.empty() ? "nothing" : join(types, ", ")) +
                    "; sum it up, choose the one output that is a number (option 'of'), or ask for its "
                    "Jacobian or a VJP");
  }
  return with_outputs(primal, std::move(outputs));
}

DerivativePlan plan_derivative(const Program& primal, const DerivativeRequest& request,
                               const PassOptions& passes) {
  Program f = differentiated(primal, request.kind, request.of);
  std::vector<Value> returned;
  if (!is_second_order(request.kind)) {
    for (std::size_t i : returned_outputs(request, primal.outputs().size()))
      returned.push_back(primal.outputs()[i]);
    AccumulationRequest accumulation = with_seeds(request, request.order);
    accumulation.returned = std::move(returned);
    return {std::move(f), std::move(accumulation), {}};
  }
  DerivativePlan plan;
  const Program jacobian = jacobian_program(primal, f, request, passes, plan.earlier);
  const std::size_t values = primal.outputs().size();
  const std::vector<Value> all(jacobian.outputs().begin(), jacobian.outputs().end());
  const std::vector<Value> blocks(all.begin() + static_cast<std::ptrdiff_t>(values), all.end());
  for (std::size_t i : returned_outputs(request, values)) returned.push_back(all[i]);
  if (request.returns_jacobian) returned.insert(returned.end(), blocks.begin(), blocks.end());
  plan.program = with_outputs(jacobian, blocks);
  plan.request = with_seeds(request, {});
  plan.request.order = outer_order(plan.program, request, plan.request, passes);
  plan.request.returned = std::move(returned);
  return plan;
}

DerivativeCompilation compile_derivative(const Program& primal, const DerivativeRequest& request,
                                         const CompileOptions& options, bool with_back_end) {
  DerivativeCompilation result;
  result.plan = plan_derivative(primal, request, options_of_passes(options));
  CompileOptions compiling = options;
  compiling.request = result.plan.request;
  Compilation& c = result.compilation;
  c = with_back_end ? compile(result.plan.program, compiling)
                    : accumulate_and_optimise(result.plan.program, compiling);
  c.accumulation.cost.multiplications += result.plan.earlier.multiplications;
  c.accumulation.cost.additions += result.plan.earlier.additions;
  if (is_second_order(request.kind))
    c.folded = executed_beyond(c.executed, primal, options_of_passes(options));
  return result;
}

}  // namespace loipe
