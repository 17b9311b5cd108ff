// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/approximate_attention.h>
#include <loipe/jacobian.h>

namespace loipe {

/// What is computed, with f of arguments x_a (those of `wrt`) and outputs y_i (those of
/// `of`). Shapes are joined; [k] stands before all others where DerivativeOptions::directions
/// is k.
enum class DerivativeKind : std::uint8_t {
  jacobian,  ///< d y_i / d x_a                           y_i + x_a
  jvp,       ///< sum_a d y_i / d x_a * tangent_a         y_i
  vjp,       ///< sum_i cotangent_i * d y_i / d x_a       x_a
  gradient,  ///< d y / d x_a of one number y             x_a
  hessian,   ///< d^2 y_i / d x_a d x_b                   y_i + x_a + x_b
  hvp,       ///< sum_b d^2 y_i / d x_a d x_b * tangent_b y_i + x_a
};

/// Tensors of one run, in the order of the indices.
struct DerivativeResult {
  std::vector<Tensor> outputs;      ///< the values that it returns
  std::vector<Tensor> jacobian;     ///< of value_and_hessian: d y_i / d x_a
  std::vector<Tensor> derivatives;  ///< by (i, a, b), as far as the kind has them
  /// With DerivativeOptions::attention_reports: of each attention that may be approximate, in their order in
  /// the function.
  std::vector<AttentionReport> attention = {};
};

/// A function's derivative of one kind, compiled. It is immutable and cheap to copy;
/// any number of threads may run it at the same time. Its arguments are those of the
/// function, then the seeds: `tangent.<argument>` for each of wrt, or `cotangent.<i>` for
/// each of `of`. Its results are named out.<i>, jac.<i>.<argument>, jvp.<i>,
/// vjp.<argument>, grad.<argument>, hess.<i>.<argument>.<argument>, hvp.<i>.<argument>.
class Derivative {
 public:
  DerivativeKind kind() const;
  std::size_t argument_count() const;  ///< seeds included
  const std::string& argument_name(std::size_t i) const;
  const TensorType& argument_type(std::size_t i) const;
  std::size_t result_count() const;
  const std::string& result_name(std::size_t i) const;
  /// Of result i for one example; a block with BlockFormat::coo is [nnz].
  TensorType result_type(std::size_t i) const;
  /// Where result i, a block of a Jacobian or Hessian, can differ from zero. Rows number the
  /// elements of output (+ argument), columns those of the last argument. UserError for
  /// other results.
  SparsePattern pattern(std::size_t i) const;

  /// Evaluates at tensors of exactly the declared types (UserError): those of the function,
  /// then the seeds.
  DerivativeResult operator()(std::span<const Tensor> arguments) const;
  DerivativeResult operator()(std::initializer_list<Tensor> arguments,
                              std::initializer_list<Tensor> seeds = {}) const;

  /// Evaluates on the caller's memory, nothing is copied; see Jacobian::run.
  template <class T>
  void run(std::span<const std::span<const T>> arguments, std::span<const std::span<T>> results) const;

  /// Evaluates B examples, which do not mix; see Jacobian::run_batch. Every result gets a
  /// leading axis of examples, and so has every argument that is not shared. The tangent of
  /// a shared argument is shared.
  DerivativeResult run_batch(std::span<const Tensor> arguments) const;
  DerivativeResult run_batch(std::initializer_list<Tensor> arguments) const {
    return run_batch(std::span<const Tensor>(arguments.begin(), arguments.size()));
  }
  template <class T>
  void run_batch(std::int64_t examples, std::span<const std::span<const T>> arguments,
                 std::span<const std::span<T>> results, const BatchLayouts& layouts = {}) const;

  bool is_shared(std::size_t i) const;
  bool vectorises_examples() const;

  const JacobianCost& cost() const;
  std::size_t peak_bytes() const;
  /// The elimination order of the function, and of the Jacobian's program (empty where
  /// there is none): vertex numbers.
  const std::vector<int>& order() const;
  const std::vector<int>& outer_order() const;
  /// The optimised program as text.
  std::string program_text() const;
  /// The same as C11, see c_source.h. UserError unless `function` is a name of C; Unsupported for ops that
  /// are defined in C++ (custom_op.h).
  CSource c_source(const std::string& function) const;

  struct Compiled;
  explicit Derivative(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

 private:
  std::shared_ptr<const Compiled> compiled_;
};

/// What a Derivative returns beside the derivative and auxiliary outputs.
enum class Beside : std::uint8_t {
  nothing,
  values,  ///< all outputs; with a Hessian the Jacobian too
};

/// Traces, linearizes, eliminates, optimises and compiles; for a Hessian or its product
/// twice, the second time the optimised program of the Jacobian. Errors as for
/// jacobian_of_function; UserError for an option that the kind does not have, and for the
/// gradient of what is no single number.
Derivative derivative_of_function(DerivativeKind kind, const TracedFunction& function,
                                  std::span<const Argument> arguments, const DerivativeOptions& options = {},
                                  Beside beside = Beside::values);
/// The same for a program in textual form (docs/ir_text.md).
Derivative derivative_of_program(DerivativeKind kind, std::string_view text,
                                 const DerivativeOptions& options = {}, Beside beside = Beside::values);

namespace detail {

template <std::size_t N, class Function>
Derivative derivative(DerivativeKind kind, Beside beside, Function function,
                      std::span<const Argument> arguments, const DerivativeOptions& options) {
  return derivative_of_function(kind, pack_function<N>(std::move(function)), arguments, options, beside);
}

}  // namespace detail

// The same for a callable of N traced tensors, under the names of JAX.
//
//   auto f = [](auto x) { return loipe::sum(x * x * x); };
//   auto H = loipe::hessian(f, {{"x", {DType::f64, {3}}}});
//   auto h = H({x}).derivatives[0];                      // shape [3,3]
//   auto J = loipe::jvp(f, {{"x", {DType::f64, {3}}}});
//   auto [values, none, tangents] = J({x}, {v});

/// Values, and the Jacobian times tangents.
template <class Function, std::size_t N>
Derivative jvp(Function function, const Argument (&arguments)[N], const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::jvp, Beside::values, std::move(function), arguments, options);
}

/// Values, and cotangents times the Jacobian.
template <class Function, std::size_t N>
Derivative vjp(Function function, const Argument (&arguments)[N], const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::vjp, Beside::values, std::move(function), arguments, options);
}

/// The derivative of one number, of the shape of each argument.
template <class Function, std::size_t N>
Derivative gradient(Function function, const Argument (&arguments)[N],
                    const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::gradient, Beside::nothing, std::move(function), arguments,
                               options);
}

template <class Function, std::size_t N>
Derivative value_and_gradient(Function function, const Argument (&arguments)[N],
                              const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::gradient, Beside::values, std::move(function), arguments,
                               options);
}

/// Second derivatives.
template <class Function, std::size_t N>
Derivative hessian(Function function, const Argument (&arguments)[N], const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::hessian, Beside::nothing, std::move(function), arguments,
                               options);
}

/// Values, the Jacobian (the gradient, where y is a number), and second derivatives.
template <class Function, std::size_t N>
Derivative value_and_hessian(Function function, const Argument (&arguments)[N],
                             const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::hessian, Beside::values, std::move(function), arguments,
                               options);
}

/// Second derivatives times tangents.
template <class Function, std::size_t N>
Derivative hvp(Function function, const Argument (&arguments)[N], const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::hvp, Beside::nothing, std::move(function), arguments, options);
}

template <class Function, std::size_t N>
Derivative value_and_hvp(Function function, const Argument (&arguments)[N],
                         const DerivativeOptions& options = {}) {
  return detail::derivative<N>(DerivativeKind::hvp, Beside::values, std::move(function), arguments, options);
}

}  // namespace loipe
