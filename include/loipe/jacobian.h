// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/batch.h>
#include <loipe/c_source.h>
#include <loipe/derivative_options.h>
#include <loipe/sparse_pattern.h>
#include <loipe/structured_block.h>
#include <loipe/trace.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loipe {

using JacobianOptions = DerivativeOptions;

/// Scalar operations. `actual`: what elimination records for this order. `folded`:
/// what the optimised program executes beyond the primal one.
struct JacobianCost {
  std::int64_t actual_multiplications = 0;
  std::int64_t actual_additions = 0;
  std::int64_t folded_multiplications = 0;  ///< divisions included
  std::int64_t folded_additions = 0;
};

/// Values and blocks of one run.
struct JacobianResult {
  std::vector<Tensor> outputs;
  /// blocks[i][k] = d(output of()[i])/d(wrt k), of shape output + argument, or [nnz] with
  /// BlockFormat::coo.
  std::vector<std::vector<Tensor>> blocks;
  /// With BlockFormat::structured instead of blocks: terms[i][k] are the tensors of the
  /// block's structured form, Jacobian::structure(i, k).
  std::vector<std::vector<std::vector<Tensor>>> terms;
};

/// A function's value and Jacobian, compiled. It is immutable and cheap to copy;
/// any number of threads may run it at the same time.
class Jacobian {
 public:
  std::size_t argument_count() const;
  std::size_t output_count() const;
  const std::string& argument_name(std::size_t i) const;
  const TensorType& argument_type(std::size_t i) const;
  const TensorType& output_type(std::size_t i) const;
  /// Positions of the arguments that it differentiates by.
  std::span<const std::size_t> wrt() const;
  /// Positions of the outputs that it differentiates: by default all.
  std::span<const std::size_t> of() const;
  /// Of block (i, k) as runs give it for one example: shape output of()[i] + argument wrt()[k];
  /// with BlockFormat::coo [nnz], the entries of block_pattern(i, k) in its order. nnz can
  /// be 0. UserError with BlockFormat::structured.
  TensorType block_type(std::size_t i, std::size_t k) const;
  /// Where block (i, k) can differ from zero, whatever the arguments: rows number the
  /// elements of output of()[i], columns those of argument wrt()[k], both row-major. Sorted by
  /// row, then column. For every format; computed at each call for dense.
  SparsePattern block_pattern(std::size_t i, std::size_t k) const;
  /// The structured form of block (i, k), of which runs give the tensors. UserError unless the
  /// format is BlockFormat::structured.
  const StructuredBlock& structure(std::size_t i, std::size_t k) const;

  /// Evaluates at tensors of exactly the declared types (UserError).
  JacobianResult operator()(std::span<const Tensor> arguments) const;
  JacobianResult operator()(std::initializer_list<Tensor> arguments) const {
    return (*this)(std::span<const Tensor>(arguments.begin(), arguments.size()));
  }

  /// Evaluates on the caller's memory, nothing is copied: row-major elements of type
  /// T for all arguments, all outputs, and all blocks (output by output; of structured ones
  /// all tensors). The dtypes
  /// of the program must be T's, the sizes those of the types (UserError). Outputs and
  /// blocks overlap neither each other nor arguments; this is not checked.
  template <class T>
  void run(std::span<const std::span<const T>> arguments, std::span<const std::span<T>> outputs,
           std::span<const std::span<T>> blocks) const;

  /// Evaluates B examples, which do not mix. Every argument has a leading axis of B
  /// examples, but for the shared ones; every output and every block gets one: block
  /// (i, k) has shape [B] + block_type(i, k). B is what the arguments say
  /// (UserError where they differ), JacobianOptions::batch where all are shared.
  JacobianResult run_batch(std::span<const Tensor> arguments) const;
  JacobianResult run_batch(std::initializer_list<Tensor> arguments) const {
    return run_batch(std::span<const Tensor>(arguments.begin(), arguments.size()));
  }

  /// The same on the caller's memory, in either layout (see batch.h); allocates nothing
  /// once as many threads as ever have run it. The bits of an example depend neither on
  /// the other examples, nor on their number, nor on layouts and threads. UserError where
  /// a dtype, a size or a stride does not fit.
  template <class T>
  void run_batch(std::int64_t examples, std::span<const std::span<const T>> arguments,
                 std::span<const std::span<T>> outputs, std::span<const std::span<T>> blocks,
                 const BatchLayouts& layouts = {}) const;

  /// Whether run_batch takes one value of argument i for all examples.
  bool is_shared(std::size_t i) const;
  /// Whether run_batch computes several examples at once.
  bool vectorises_examples() const;

  const JacobianCost& cost() const;
  /// Bytes that one run of JacobianOptions::batch examples needs at its peak.
  std::size_t peak_bytes() const;
  /// The elimination order: vertex numbers.
  const std::vector<int>& order() const;
  /// The optimised accumulation program as text.
  std::string program_text() const;
  /// The same as C11, see c_source.h. UserError unless `function` is a name of C; Unsupported for ops that
  /// are defined in C++ (custom_op.h).
  CSource c_source(const std::string& function) const;

  struct Compiled;
  explicit Jacobian(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

 private:
  std::shared_ptr<const Compiled> compiled_;
};

/// Traces, linearizes, eliminates, optimises and compiles `function`, which takes
/// its arguments as one span, however many there are, and returns its results.
/// UserError with the name of the op for every mistake in it; Unsupported for an op
/// without a rule.
Jacobian jacobian_of_function(const TracedFunction& function, std::span<const Argument> arguments,
                              const JacobianOptions& options = {});

/// The same for a callable of N traced tensors, in particular a generic lambda,
/// that returns one tensor or several (tuple, array, vector):
///
///   auto f = [](auto x, auto y) { return loipe::sin(x) * y; };
///   auto J = loipe::jacobian(f, {{"x", {DType::f64, {3}}}, {"y", {DType::f64, {3}}}});
///   auto result = J({x, y});        // result.blocks[0][1] is d(out)/dy, shape [3,3]
template <class Function, std::size_t N>
Jacobian jacobian(Function function, const Argument (&arguments)[N], const JacobianOptions& options = {}) {
  return jacobian_of_function(detail::pack_function<N>(std::move(function)), arguments, options);
}

/// The same under the name that others look for: a Jacobian comes with the value, and the
/// function is evaluated once for both.
template <class Function, std::size_t N>
Jacobian value_and_jacobian(Function function, const Argument (&arguments)[N],
                            const DerivativeOptions& options = {}) {
  return jacobian(std::move(function), arguments, options);
}

/// The same for a program in textual form (docs/ir_text.md).
Jacobian jacobian_of_program(std::string_view text, const JacobianOptions& options = {});

}  // namespace loipe
