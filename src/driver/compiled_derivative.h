// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/loipe.h>

#include <memory>
#include <span>
#include <vector>

#include "base/pool.h"
#include "driver/derivative.h"

namespace loipe {

/// What stands behind loipe::Jacobian and loipe::Derivative: a compiled derivative on the
/// caller's tensors and memory.
class CompiledDerivative {
 public:
  CompiledDerivative(DerivativeKind kind, Program primal, const DerivativeOptions& options, Beside beside);

  const Program& primal() const { return primal_; }
  const DerivativeRequest& request() const { return request_; }
  const DerivativePlan& plan() const { return derivative_.plan; }
  const Compilation& compilation() const { return derivative_.compilation; }
  const DerivativeSignature& signature() const { return signature_; }
  const Executable& executable() const { return *derivative_.compilation.executable; }
  const JacobianCost& cost() const { return cost_; }
  bool is_shared(std::size_t input) const { return is_shared_[input]; }

  /// Bytes that one run of the batch needs at its peak.
  std::size_t peak_bytes() const;
  /// Of block `index`, counted from the first that the last accumulation made.
  SparsePattern pattern(std::size_t index) const;

  std::vector<Tensor> run(std::span<const Tensor> inputs) const { return executable().run(inputs); }
  std::vector<Tensor> run_batch(std::span<const Tensor> inputs) const;

  /// The same on spans; results are given in groups, one after the other. UserError where a
  /// number of spans or a dtype does not fit.
  template <class T>
  using Spans = std::span<const std::span<T>>;
  template <class T>
  void run(Spans<const T> inputs, std::initializer_list<Spans<T>> results) const;
  template <class T>
  void run_batch(std::int64_t examples, Spans<const T> inputs, std::initializer_list<Spans<T>> results,
                 const BatchLayouts& layouts) const;

 private:
  struct RunBytes {
    std::vector<ConstBytes> inputs;
    std::vector<Bytes> results;
  };
  template <class T>
  void fill(RunBytes& bytes, Spans<const T> inputs, std::initializer_list<Spans<T>> results) const;
  std::int64_t batch_extent(std::span<const Tensor> inputs) const;

  Program primal_;
  DerivativeRequest request_;
  DerivativeSignature signature_;
  DerivativeCompilation derivative_;
  JacobianCost cost_;
  std::int64_t batch_ = 1;
  std::vector<bool> is_shared_;
  mutable Pool<RunBytes> bytes_;  ///< prepared once and used again
};

/// UserError that names `what` unless i < count.
void check_index(std::size_t i, std::size_t count, const char* what);

}  // namespace loipe
