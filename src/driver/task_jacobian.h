// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/batch_plan.h"
#include "driver/pipeline.h"
#include "driver/subject_order.h"

namespace loipe {

struct TaskJacobianOptions {
  std::string order = "reverse";
  std::vector<std::string> wrt;  ///< empty: all floating arguments
  std::optional<DType> dtype;
  BatchPlan batch;
  std::string backend = "jit";
  int threads = 0;                ///< 0: all cores
  std::size_t memory_limit = 0;   ///< of a whole run, all examples; 0: none
  bool flush_subnormals = false;  ///< see BackendOptions
  bool use_code_cache = true;     ///< see BackendOptions
  BlockValues block_values = BlockValues::all;
};

/// Called with the examples done so far.
using BatchProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// The value and Jacobian of a subject, compiled, in the form of the command line: with
/// a batch every batched input, every output and every block has a leading axis of
/// examples; without one nothing has. Blocks are dense, or [nnz] with BlockValues::entries. Whether the
/// program itself has the axis, or is run once for each example, does not show.
class TaskJacobian {
 public:
  TaskJacobian(const Subject& subject, const TaskJacobianOptions& options);

  const Program& program() const { return program_; }
  const EliminationOrder& order() const { return order_; }
  /// Without executable where examples run one by one though the program has their axis.
  const Compilation& compilation() const { return compilation_; }
  const BatchPlan& batch() const { return batch_; }
  /// Positions of the arguments that it differentiates by.
  const std::vector<std::size_t>& wrt() const { return wrt_; }

  /// Of all arguments; of all outputs, then of all blocks, output by output.
  std::span<const TensorType> input_types() const { return input_types_; }
  std::span<const TensorType> result_types() const { return result_types_; }
  /// What runs the examples of a batch; with run_batch it takes other layouts too.
  const Executable& executable() const { return per_example_ ? *per_example_ : *compilation_.executable; }
  std::size_t output_count() const { return program_.outputs().size(); }
  /// Whether examples are computed several at a time.
  bool vectorises_examples() const { return per_example_ || compilation_.executable->vectorises_examples(); }
  /// "out.1", "jac.1.x": what result_types()[i] is called in files.
  std::string result_name(std::size_t i) const;

  /// Of block i as a dense tensor: [examples] + output + argument.
  Shape block_shape(std::size_t i) const;

  /// Bytes that a run needs at its peak, inputs and results included.
  std::size_t peak_bytes() const;

  /// Inputs and results of the declared types; an interrupt between examples leaves the
  /// results half written.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const BatchProgress& progress = {}) const;
  void run(std::span<const Tensor> inputs, std::span<Tensor> results,
           const BatchProgress& progress = {}) const;

 private:
  void run_examples(const Executable& executable, std::span<const Tensor> inputs, std::span<Tensor> results,
                    const BatchProgress& progress) const;

  Program program_;
  BatchPlan batch_;
  EliminationOrder order_;
  std::vector<std::size_t> wrt_;
  Compilation compilation_;
  /// One example of a program that has a batch axis, vectorised over examples; null
  /// where the program itself serves better.
  std::unique_ptr<Executable> per_example_;
  std::vector<TensorType> input_types_, result_types_;
};

}  // namespace loipe
