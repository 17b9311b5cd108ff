// SPDX-License-Identifier: Apache-2.0
#include "driver/derivative_options.h"

#include <algorithm>
#include <numeric>

#include "accumulation/seeding.h"
#include "base/text.h"

namespace loipe {

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

void check_options(DerivativeKind kind, const DerivativeOptions& options) {
  if (options.threads < 0)
    throw UserError("threads is " + std::to_string(options.threads) + ", expected 0 (all cores) or more");
  if (options.batch < 1)
    throw UserError("batch is " + std::to_string(options.batch) + ", expected 1 or more examples");
  if (options.attention_reports && (options.batch > 1 || kind == DerivativeKind::jacobian))
    throw UserError("attention_reports: a " + std::string(options.batch > 1 ? "batch" : "Jacobian") +
                    " returns none; expected another kind of derivative, of one example");
  check_directions(kind, options.directions);
  check_outer_order(kind, options.outer_order);
  if (options.format != BlockFormat::dense && kind != DerivativeKind::jacobian &&
      kind != DerivativeKind::hessian)
    throw UserError("format coo: only blocks of a Jacobian or Hessian have a sparse form, not those of " +
                    to_string(kind));
  if (options.format == BlockFormat::structured && kind != DerivativeKind::jacobian)
    throw UserError("format structured: only blocks of a Jacobian have it, not those of " + to_string(kind) +
                    "; coo is the sparse form of a Hessian");
}

}  // namespace

void check_directions(DerivativeKind kind, std::int64_t directions) {
  if (directions < 0)
    throw UserError("directions is " + std::to_string(directions) +
                    ", expected 0 (one, without an axis) or more");
  if (directions > 0 && !has_directions(kind))
    throw UserError("directions is " + std::to_string(directions) +
                    ": only jvp, vjp and hvp have them, not " + to_string(kind));
}

void check_outer_order(DerivativeKind kind, std::string_view outer_order) {
  if (!outer_order.empty() && !is_second_order(kind))
    throw UserError("outer order '" + shortened(std::string(outer_order)) +
                    "': only hessian and hvp differentiate twice, not " + to_string(kind));
}

const char* default_order(DerivativeKind kind) { return kind == DerivativeKind::jvp ? "forward" : "reverse"; }

std::vector<std::size_t> resolve_outputs(const Program& primal, const std::vector<int>& of) {
  std::vector<std::size_t> positions(primal.outputs().size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  if (of.empty()) return positions;
  positions.clear();
  for (int i : of) positions.push_back(i < 0 ? primal.outputs().size() : static_cast<std::size_t>(i));
  return positions;
}

DerivativeRequest resolve_request(DerivativeKind kind, const Program& primal,
                                  const DerivativeOptions& options, Beside beside) {
  check_options(kind, options);
  DerivativeRequest request;
  request.kind = kind;
  request.wrt = resolve_wrt(primal, options.wrt);
  request.of = resolve_outputs(primal, options.of);
  if (options.directions > 0) request.directions = options.directions;
  request.order = resolve_order(options.order.empty() ? default_order(kind) : options.order,
                                differentiated(primal, kind, request.of), "");
  request.outer_order = options.outer_order;
  request.returns_values = beside == Beside::values;
  request.returns_jacobian = is_second_order(kind) && beside == Beside::values;
  return request;
}

std::vector<bool> resolve_shared(const Program& primal, const DerivativeSignature& signature,
                                 const DerivativeOptions& options) {
  std::vector<bool> is_shared(signature.inputs.size(), false);
  for (const ArgumentRef& ref : options.shared) {
    const std::size_t position = position_of(primal, ref, "shared");
    is_shared[position] = true;
    const std::string tangent = tangent_name(primal.argument_name(position));
    for (std::size_t i = primal.arguments().size(); i < signature.inputs.size(); ++i)
      if (signature.inputs[i].name == tangent) is_shared[i] = true;
  }
  return is_shared;
}

}  // namespace loipe
