// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/subject_order.h"
#include "driver/task_plan.h"

namespace loipe {

/// Called with the examples done so far.
using BatchProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// The value and a derivative of a subject, by default the Jacobian, compiled, in the form of the command
/// line: with a batch every batched input, every output and every block has a leading axis of examples;
/// without one nothing has. Blocks are dense, or [nnz] with BlockValues::entries. Whether the program itself
/// has the axis, or is run once for each example, does not show.
class TaskJacobian {
 public:
  TaskJacobian(const Subject& subject, const TaskJacobianOptions& options);

  const Program& program() const { return plan_.program; }
  const DerivativeRequest& request() const { return plan_.request; }
  const EliminationOrder& order() const { return plan_.request.order; }
  /// Of the Jacobian's program that is differentiated again; null for first derivatives.
  const EliminationOrder* outer_order() const;
  /// Without executable where examples run one by one though the program has their axis.
  const Compilation& compilation() const { return derivative_.compilation; }
  const BatchPlan& batch() const { return batch_; }
  /// Positions of the arguments that it differentiates by.
  const std::vector<std::size_t>& wrt() const { return plan_.request.wrt; }

  /// Of all arguments, then of seeds; of all outputs, then of the derivatives.
  std::span<const TensorType> input_types() const { return input_types_; }
  std::span<const TensorType> result_types() const { return result_types_; }
  /// What runs the examples of a batch; with run_batch it takes other layouts too.
  const Executable& executable() const {
    return per_example_ ? *per_example_ : *derivative_.compilation.executable;
  }
  std::size_t output_count() const { return plan_.program.outputs().size(); }
  /// Whether examples are computed several at a time.
  bool vectorises_examples() const { return executable().vectorises_examples(); }
  /// "out.1", "jac.1.x": what result_types()[i] is called in files.
  const std::string& result_name(std::size_t i) const { return plan_.signature.results[i].name; }
  /// "x", "tangent.x": what input_types()[i] is of; and "in.x", "tangent.x": in files.
  const std::string& input_name(std::size_t i) const { return plan_.signature.inputs[i].name; }
  std::string tensor_name(std::size_t i) const { return plan_.tensor_names()[i]; }
  /// Of result i as a dense tensor, whatever form it has.
  const TensorType& dense_type(std::size_t i) const { return plan_.signature.results[i].type; }
  /// Whether result i has a sparse form, and where it can then differ from zero in any
  /// example: blocks of the Jacobian or Hessian that is compiled.
  bool has_pattern(std::size_t i) const;
  /// The structured form of all blocks, output by output; only for BlockValues::terms. Tensor
  /// k of block b is the result block_name(b) + "." + k.
  const std::vector<StructuredBlock>& structures() const { return derivative_.compilation.structures; }
  const std::string& block_name(std::size_t block) const { return block_names_[block]; }
  SparsePattern pattern(std::size_t i) const;

  /// Bytes that a run needs at its peak, inputs and results included.
  std::size_t peak_bytes() const;

  /// Inputs and results of the declared types; an interrupt between examples leaves the
  /// results half written.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const BatchProgress& progress = {}) const;
  void run(std::span<const Tensor> inputs, std::span<Tensor> results,
           const BatchProgress& progress = {}) const;

 private:
  void name_terms();
  TensorType result_type(std::size_t i, const TaskJacobianOptions& options,
                         const TensorType& in_program) const;
  void run_examples(const Executable& executable, std::span<const Tensor> inputs, std::span<Tensor> results,
                    const BatchProgress& progress) const;

  TaskPlan plan_;
  BatchPlan batch_;
  DerivativeCompilation derivative_;
  /// One example of a program that has a batch axis, vectorised over examples; null
  /// where the program itself serves better.
  std::unique_ptr<Executable> per_example_;
  std::vector<TensorType> input_types_, result_types_;
  std::vector<std::string> block_names_;
};

}  // namespace loipe
