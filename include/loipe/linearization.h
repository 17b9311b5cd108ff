// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/derivative.h>

namespace loipe {

/// A function's values and its derivative at a point as a linear map, compiled in two
/// programs: one runs once for a point, the other once for each application of the map and
/// computes only what depends on the directions. Immutable and cheap to copy; any number of
/// threads may use it at the same time.
class Linearization {
 public:
  /// What was computed at a point.
  struct Point {
    std::vector<Tensor> outputs;    ///< values of the function
    std::vector<Tensor> residuals;  ///< what the linear map takes from the point
  };

  /// At arguments of exactly the declared types (UserError).
  Point at(std::span<const Tensor> arguments) const;
  Point at(std::initializer_list<Tensor> arguments) const {
    return at(std::span<const Tensor>(arguments.begin(), arguments.size()));
  }
  /// The map on tangents (linearize) or cotangents (pullback), in the order of
  /// Derivative::argument_name: derivatives as of a JVP or VJP.
  std::vector<Tensor> apply(const Point& point, std::span<const Tensor> seeds) const;
  std::vector<Tensor> apply(const Point& point, std::initializer_list<Tensor> seeds) const {
    return apply(point, std::span<const Tensor>(seeds.begin(), seeds.size()));
  }

  /// The two programs as text.
  std::string point_program_text() const;
  std::string linear_program_text() const;

  struct Compiled;
  explicit Linearization(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

 private:
  std::shared_ptr<const Compiled> compiled_;
};

/// `kind` is jvp or vjp (UserError otherwise); options and errors as for a Derivative. A
/// batch is not supported: a memory limit holds for each of the two programs.
Linearization linearization_of_function(DerivativeKind kind, const TracedFunction& function,
                                        std::span<const Argument> arguments,
                                        const DerivativeOptions& options = {});

/// Pushes tangents forward: apply(at({x}), {v}) is J v.
///
///   auto f = [](auto x) { return loipe::exp(loipe::sin(x)); };
///   auto L = loipe::linearize(f, {{"x", {DType::f64, {3}}}});
///   auto point = L.at({x});                  // point.outputs[0] is f(x)
///   auto Jv = L.apply(point, {v})[0];        // no exp and no sin any more
template <class Function, std::size_t N>
Linearization linearize(Function function, const Argument (&arguments)[N],
                        const DerivativeOptions& options = {}) {
  return linearization_of_function(DerivativeKind::jvp, detail::pack_function<N>(std::move(function)),
                                   arguments, options);
}

/// Pulls cotangents back: apply(at({x}), {u}) is u J.
template <class Function, std::size_t N>
Linearization pullback(Function function, const Argument (&arguments)[N],
                       const DerivativeOptions& options = {}) {
  return linearization_of_function(DerivativeKind::vjp, detail::pack_function<N>(std::move(function)),
                                   arguments, options);
}

}  // namespace loipe
