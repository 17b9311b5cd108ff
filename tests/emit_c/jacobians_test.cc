// SPDX-License-Identifier: Apache-2.0
// The Jacobian of every op as C, in forward, reverse and Markowitz order.
#include "backends/c/elementwise.h"
#include "compiled_sources.h"
#include "driver/pipeline.h"
#include "orders/order.h"

namespace loipe {
namespace {

constexpr std::size_t kMostSamples = 3;  ///< of one op; the first ones have the most different shapes

/// z = y^2, y = op(1 x_0, 1 x_1, ...): the op has vertices on both sides, at its own sample.
Program between_others(const OpDef& op, const Sample& sample) {
  Builder b;
  std::vector<Value> operands;
  for (const Tensor& tensor : sample.operands) {
    const Value x = b.argument("x" + std::to_string(operands.size()), tensor.type());
    operands.push_back(is_floating(tensor.dtype()) ? b.emit("mul", {x, b.scalar(1, tensor.dtype())}) : x);
  }
  const Value y = b.emit(op, operands, sample.attributes);
  return b.finish({b.emit("mul", {y, y})});
}

bool is_differentiable_call(const OpDef& op, const Sample& sample) {
  if (!op.jacobian.value.rule || op.name.value == "argument" || op.name.value == "custom") return false;
  if (std::ranges::none_of(sample.operands, [](const Tensor& t) { return is_floating(t.dtype()); }))
    return false;
  const Program program = one_node_program(op, sample);
  return is_floating(program.type(program.outputs()[0]).dtype);
}

struct Evaluation {
  std::string what;
  std::vector<Tensor> arguments;
};

void add_jacobians(CompiledSources& sources, std::vector<Evaluation>& evaluations, const OpDef& op,
                   const Sample& sample) {
  const Program program = between_others(op, sample);
  for (const EliminationOrder& order :
       {forward_order(program), reverse_order(program), markowitz_order(program)}) {
    const CompileOptions options{.request = {floating_arguments(program), order, {}}, .backend = "reference"};
    sources.add(compile(program, options).optimised);
    evaluations.push_back(
        {std::string(op.name.value) + ", " + order.name + " {" + sample.attributes.print() + "}",
         sample.operands});
  }
}

class EmittedJacobians : public WithCompiler {
 protected:
  void expect_jacobians(DType dtype) {
    CompiledSources sources(GetParam());
    std::vector<Evaluation> evaluations;
    for (const OpDef* op : all_ops()) {
      Rng rng(29);
      std::size_t left = c::is_elementwise(op->name.value) ? 1 : kMostSamples;
      for (const Sample& sample : op->samples.value(rng))
        if (left > 0 && is_differentiable_call(*op, sample)) {
          add_jacobians(sources, evaluations, *op,
                        dtype == DType::f32 ? in_single_precision(sample) : sample);
          --left;
        }
    }
    sources.compile();
    for (std::size_t k = 0; k < sources.size() && !HasFatalFailure(); ++k) {
      SCOPED_TRACE(evaluations[k].what + ", source " + std::to_string(k));
      sources.expect_reference(k, evaluations[k].arguments, 1e-13, 1e-5);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Compilers, EmittedJacobians, ::testing::Values("gcc", "clang-19"), compiler_name);

TEST_P(EmittedJacobians, AreThoseOfTheInterpreterInDoublePrecision) { expect_jacobians(DType::f64); }
TEST_P(EmittedJacobians, AreThoseOfTheInterpreterInSinglePrecision) { expect_jacobians(DType::f32); }

}  // namespace
}  // namespace loipe
