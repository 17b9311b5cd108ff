// SPDX-License-Identifier: Apache-2.0
// The laws, one function each.
#include <cmath>

#include "accumulation/accumulate.h"
#include "backends/backend.h"
#include "base/rng.h"
#include "driver/sparse_blocks.h"
#include "ir/interpreter.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/emit.h"
#include "orders/moves.h"
#include "passes/runner.h"
#include "support/dense_jacobian.h"
#include "support/law_checks.h"
#include "support/laws.h"

namespace loipe::testing {

namespace {

std::vector<EliminationOrder> some_orders(const Program& program) {
  std::vector<EliminationOrder> orders{forward_order(program), reverse_order(program),
                                       markowitz_order(program)};
  for (std::uint64_t seed = 1; seed <= 3; ++seed) orders.push_back(random_order(program, seed));
  for (std::uint64_t seed = 1; seed <= 2; ++seed) orders.push_back(random_moves(program, seed));
  return orders;
}

Accumulation jacobian_of(const Program& program, const EliminationOrder& order) {
  return accumulate(program, {floating_arguments(program), order, {}});
}

std::string in_context(const std::string& context, const std::string& violation) {
  return violation.empty() ? "" : context + ": " + violation;
}

/// Every elimination order gives the Jacobian that dense local Jacobians give.
std::string orders(const Case& c) {
  const std::vector<Tensor> expected = dense_jacobian(c.program, c.arguments, floating_arguments(c.program));
  for (const EliminationOrder& order : some_orders(c.program)) {
    const std::vector<Tensor> results = evaluate(jacobian_of(c.program, order).program, c.arguments);
    const auto blocks = std::span(results).subspan(c.program.outputs().size());
    if (std::string wrong = difference(blocks, expected, 1e-11); !wrong.empty())
      return in_context("order " + order.name, wrong);
  }
  return "";
}

/// The cost that labels predict is that of the nodes which elimination records.
std::string costs(const Case& c) {
  for (const EliminationOrder& order : some_orders(c.program)) {
    const Accumulation a = jacobian_of(c.program, order);
    if (a.cost.multiplications != a.counted.multiplications || a.cost.additions != a.counted.additions)
      return "order " + order.name + ": predicted " + std::to_string(a.cost.multiplications) + " and " +
             std::to_string(a.cost.additions) + ", counted " + std::to_string(a.counted.multiplications) +
             " and " + std::to_string(a.counted.additions);
  }
  return "";
}

/// Entries outside the structure of a block are zero, and those inside are the block's.
std::string structure(const Case& c) {
  const AccumulationRequest request{floating_arguments(c.program), reverse_order(c.program), {}};
  const Accumulation a = accumulate(c.program, request);
  const std::size_t outputs = c.program.outputs().size();
  const std::vector<SparsePattern> patterns = block_patterns(c.program, request, a);
  const std::vector<Tensor> dense = evaluate(a.program, c.arguments);
  const std::vector<Tensor> sparse = evaluate(with_entries(c.program, request, a, patterns), c.arguments);
  for (std::size_t block = 0; block < patterns.size(); ++block) {
    const Tensor& expected = dense[outputs + block];
    const std::int64_t columns =
        element_count(c.program.shape(c.program.arguments()[request.wrt[block % request.wrt.size()]]));
    Tensor scattered(expected.type());
    for (std::size_t e = 0; e < patterns[block].rows.size(); ++e)
      scattered.set(patterns[block].rows[e] * columns + patterns[block].columns[e],
                    sparse[outputs + block].at(static_cast<std::int64_t>(e)));
    if (std::string wrong = difference(std::span(&scattered, 1), std::span(&expected, 1), 1e-12);
        !wrong.empty())
      return in_context("block " + std::to_string(block), wrong);
  }
  return "";
}

/// The compiled program and the compiled Jacobian give what the interpreter gives, with
/// the same bits on one thread and on two.
std::string backends(const Case& c) {
  for (const Program& program : {c.program, jacobian_of(c.program, reverse_order(c.program)).program}) {
    const std::vector<Tensor> expected = evaluate(program, c.arguments);
    const auto run = [&](int threads) {
      return find_backend("jit")
          .compile(program, {.threads = threads, .use_code_cache = false})
          ->run(c.arguments);
    };
    const std::vector<Tensor> one = run(1);
    if (std::string wrong = difference(one, expected, 1e-11); !wrong.empty())
      return in_context("program of " + std::to_string(program.outputs().size()) + " outputs", wrong);
    if (run(2) != one) return "two threads give other bits than one";
  }
  return "";
}

/// Every pass alone, and all of them, keep the meaning of the recorded Jacobian.
std::string passes(const Case& c) {
  const Program program = jacobian_of(c.program, markowitz_order(c.program)).program;
  const std::vector<Tensor> expected = evaluate(program, c.arguments);
  for (const Pass& pass : all_passes()) {
    const Program after = pass.run(program);
    verify(after);
    if (std::string wrong = difference(evaluate(after, c.arguments), expected, 1e-11); !wrong.empty())
      return in_context("pass " + std::string(pass.name), wrong);
  }
  return in_context("all passes", difference(evaluate(run_passes(program), c.arguments), expected, 1e-11));
}

/// Printing and reading back gives the same text and, bit by bit, the same values.
std::string text(const Case& c) {
  for (const Program& program : {c.program, jacobian_of(c.program, forward_order(c.program)).program}) {
    const std::string printed = program_to_text(program);
    const Program again = program_from_text(printed);
    verify(again);
    if (program_to_text(again) != printed) return "it reads back as\n" + program_to_text(again);
    if (evaluate(again, c.arguments) != evaluate(program, c.arguments)) return "values change";
  }
  return "";
}

/// The sum of all outputs, each weighted, as the only output.
Program scalar_program(const Program& program) {
  Builder b(program);
  Value sum = b.scalar(0, DType::f64);
  double weight = 1;
  for (Value output : program.outputs()) {
    Integers axes;
    for (std::int64_t axis = 0; axis < program.type(output).rank(); ++axis) axes.push_back(axis);
    sum = ops::add(b, sum, ops::mul(b, weight, ops::reduce_sum(b, ops::sin(b, output), axes)));
    weight *= 0.5;
  }
  return b.finish({sum});
}

/// The Jacobian of the gradient is symmetric: the flow applied to its own output.
std::string second_derivatives(const Case& c) {
  const Program scalar = scalar_program(c.program);
  Program gradient = run_passes(jacobian_of(scalar, reverse_order(scalar)).program);
  const std::vector<std::size_t> wrt = floating_arguments(scalar);
  gradient.set_outputs({gradient.outputs().begin() + 1, gradient.outputs().end()});
  const std::vector<Tensor> results =
      evaluate(jacobian_of(gradient, forward_order(gradient)).program, c.arguments);
  const auto block = [&](std::size_t i, std::size_t k) -> const Tensor& {
    return results[wrt.size() + i * wrt.size() + k];
  };
  for (std::size_t i = 0; i < wrt.size(); ++i)
    for (std::size_t k = 0; k <= i; ++k) {
      const std::int64_t rows = element_count(scalar.shape(scalar.arguments()[wrt[i]]));
      const std::int64_t columns = element_count(scalar.shape(scalar.arguments()[wrt[k]]));
      Tensor transposed(block(i, k).type());
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t col = 0; col < columns; ++col)
          transposed.set(r * columns + col, block(k, i).at(col * rows + r));
      if (std::string wrong = difference(std::span(&transposed, 1), std::span(&block(i, k), 1), 1e-9);
          !wrong.empty())
        return in_context("blocks " + std::to_string(i) + ", " + std::to_string(k), wrong);
    }
  return "";
}

/// <u, J v> = <u J, v> for products in any order: forward and backward are transposes.
std::string duality(const Case& c) {
  Rng rng(c.program.size());
  const auto random_like = [&](Value v) {
    Tensor tensor(c.program.type(v));
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng.uniform(-1, 1));
    return tensor;
  };
  const std::vector<std::size_t> wrt = floating_arguments(c.program);
  std::vector<Tensor> u, v, with_u = c.arguments, with_v = c.arguments;
  for (Value output : c.program.outputs()) with_u.push_back(u.emplace_back(random_like(output)));
  for (std::size_t k : wrt) with_v.push_back(v.emplace_back(random_like(c.program.arguments()[k])));
  for (const EliminationOrder& order : some_orders(c.program)) {
    AccumulationRequest forward{wrt, order}, backward{wrt, order};
    forward.tangents = backward.cotangents = Shape{};
    const std::vector<Tensor> jv = evaluate(accumulate(c.program, forward).program, with_v);
    const std::vector<Tensor> uj = evaluate(accumulate(c.program, backward).program, with_u);
    double left = 0, right = 0, size = 1;
    const auto add_product = [&](double& sum, const Tensor& a, const Tensor& b) {
      for (std::int64_t i = 0; i < a.element_count(); ++i) {
        sum += a.at(i) * b.at(i);
        size += std::abs(a.at(i) * b.at(i));
      }
    };
    for (std::size_t i = 0; i < u.size(); ++i) add_product(left, u[i], jv[jv.size() - u.size() + i]);
    for (std::size_t k = 0; k < v.size(); ++k) add_product(right, uj[uj.size() - v.size() + k], v[k]);
    if (!(std::abs(left - right) <= 1e-11 * size))
      return "order " + order.name + ": <u, J v> is " + std::to_string(left) + ", <u J, v> is " +
             std::to_string(right);
  }
  return "";
}

constexpr Law kLaws[] = {
    {"orders", orders},
    {"costs", costs},
    {"structure", structure},
    {"backends", backends},
    {"passes", passes},
    {"text", text},
    {"second_derivatives", second_derivatives},
    {"duality", duality},
};

}  // namespace

std::span<const Law> all_laws() { return kLaws; }

}  // namespace loipe::testing
