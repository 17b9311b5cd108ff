// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/derivative.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "driver/batch_plan.h"
#include "driver/derivative.h"

namespace loipe {

struct TaskJacobianOptions {
  DerivativeKind kind = DerivativeKind::jacobian;
  std::string order;             ///< empty: forward for a JVP, else reverse
  std::vector<std::string> wrt;  ///< empty: all floating arguments
  std::vector<int> of;           ///< outputs; empty: all
  std::int64_t directions = 0;   ///< see DerivativeOptions
  std::string outer_order;       ///< see DerivativeOptions
  std::optional<DType> dtype;
  BatchPlan batch;
  std::string backend = "jit";
  int threads = 0;                ///< 0: all cores
  std::size_t memory_limit = 0;   ///< of a whole run, all examples; 0: none
  bool flush_subnormals = false;  ///< see BackendOptions
  bool use_code_cache = true;     ///< see BackendOptions
  BlockValues block_values = BlockValues::all;
  std::vector<std::string> disabled;  ///< see CompileOptions
};

/// The derivative of a subject on the caller's tensors, before anything is compiled.
struct TaskPlan {
  /// The program that is differentiated. Of one that has a batch axis, Jacobians and JVPs
  /// keep it; all other derivatives take it at extent 1 and run the examples one by one,
  /// which do not mix.
  Program program;
  DerivativeRequest request;  ///< without an order
  /// Types as the caller sees them: with an axis of examples or without.
  DerivativeSignature signature;
  std::vector<bool> has_examples;  ///< per input: it has that axis
  bool runs_each_example = false;  ///< one run of the program for each example

  /// "in.x", "tangent.x": the inputs' names in files.
  std::vector<std::string> tensor_names() const;
  std::vector<TensorType> input_types() const;
};
TaskPlan plan_task(const Subject& subject, const TaskJacobianOptions& options);

/// The subject at one example, for programs with a batch axis.
Subject one_example(const Subject& subject);

}  // namespace loipe
