// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Tracing: ordinary C++ on `Traced` tensors is run once, and every operation is
/// recorded as one node of a tensor program.
///
///     [](const Traced& A, const Traced& x) { return tanh(matmul(A, x)); }
///
/// C++ does not fix in which order the operands of an operator are evaluated, so
/// `sin(a) * cos(a)` may record the sine or the cosine first. The value is the
/// same either way; where the numbering of the nodes matters, write one operation
/// per statement.
///
/// Every mistake is a UserError that names the operation and the operand types.

namespace loipe {

class Traced;

namespace detail {
class TraceContext;
struct TracedAccess;
}  // namespace detail

/// Axis numbers. Negative ones count from the end: -1 is the last axis.
using Axes = std::vector<std::int64_t>;

/// What operators take: a traced tensor, or a number. A number becomes the rank-0
/// constant of the other operand's dtype, which must be able to hold it (0.5 is no
/// i32), and no node. Only meant as a parameter: it refers to the traced tensor.
class Operand {
 public:
  Operand(const Traced& tensor) : tensor_(&tensor) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Operand(Number number) : number_(static_cast<double>(number)) {}

  /// Null for a number.
  const Traced* tensor() const { return tensor_; }
  double number() const { return number_; }

 private:
  const Traced* tensor_ = nullptr;
  double number_ = 0;
};

/// The stand-in for a tensor while a function is traced: a type, but no value yet.
/// Cheap to copy. Valid only inside the traced call that made it; mixing values of
/// two traces is a UserError.
class Traced {
 public:
  // Moving copies, so that no Traced is ever empty.
  Traced(const Traced&) = default;
  Traced& operator=(const Traced&) = default;

  TensorType type() const;
  Shape shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  std::int64_t rank() const { return type().rank(); }

  /// Always throws UserError: there is no value to decide an `if`, `while`, `&&` or
  /// `?:` by. Use loipe::select, logical_and, logical_or, logical_not.
  explicit operator bool() const;

  // Elementwise operators. Operands of equal rank must have extents that are equal
  // or 1 in each axis; one of rank 0 goes with anything; one of lower rank first
  // gets leading axes of extent 1 (one broadcast_in_dim node), as in NumPy. The
  // dtypes must agree; convert() changes one.
  friend Traced operator+(const Operand& x, const Operand& y);
  friend Traced operator-(const Operand& x, const Operand& y);
  friend Traced operator*(const Operand& x, const Operand& y);
  friend Traced operator/(const Operand& x, const Operand& y);
  friend Traced operator-(const Traced& x);

  // Comparisons, elementwise by the same rules; the result has dtype bool.
  friend Traced operator==(const Operand& x, const Operand& y);
  friend Traced operator!=(const Operand& x, const Operand& y);
  friend Traced operator<(const Operand& x, const Operand& y);
  friend Traced operator<=(const Operand& x, const Operand& y);
  friend Traced operator>(const Operand& x, const Operand& y);
  friend Traced operator>=(const Operand& x, const Operand& y);

  Traced& operator+=(const Operand& y) { return *this = *this + y; }
  Traced& operator-=(const Operand& y) { return *this = *this - y; }
  Traced& operator*=(const Operand& y) { return *this = *this * y; }
  Traced& operator/=(const Operand& y) { return *this = *this / y; }

 private:
  friend struct detail::TracedAccess;
  Traced(std::shared_ptr<detail::TraceContext> context, std::uint32_t index)
      : context_(std::move(context)), index_(index) {}

  std::shared_ptr<detail::TraceContext> context_;
  std::uint32_t index_;
};

// Elementwise functions of one tensor: same shape, same dtype. abs, sign, neg,
// square and integer_pow also take integers, all others floating point.

Traced neg(const Traced& x);
/// Derivative 0 at 0.
Traced abs(const Traced& x);
Traced sign(const Traced& x);
Traced floor(const Traced& x);
Traced ceil(const Traced& x);
/// To the nearest integer, halves to the even one.
Traced round(const Traced& x);
Traced exp(const Traced& x);
Traced exp2(const Traced& x);
/// exp(x) - 1 without cancellation.
Traced expm1(const Traced& x);
Traced log(const Traced& x);
/// log(1 + x) without cancellation.
Traced log1p(const Traced& x);
Traced sqrt(const Traced& x);
/// 1 / sqrt(x).
Traced rsqrt(const Traced& x);
Traced cbrt(const Traced& x);
Traced sin(const Traced& x);
Traced cos(const Traced& x);
Traced tan(const Traced& x);
Traced asin(const Traced& x);
Traced acos(const Traced& x);
Traced atan(const Traced& x);
Traced sinh(const Traced& x);
Traced cosh(const Traced& x);
Traced tanh(const Traced& x);
Traced asinh(const Traced& x);
Traced acosh(const Traced& x);
Traced atanh(const Traced& x);
/// 1 / (1 + exp(-x)).
Traced logistic(const Traced& x);
Traced erf(const Traced& x);
/// 1 - erf(x) without cancellation.
Traced erfc(const Traced& x);
/// integer_pow(x, 2).
Traced square(const Traced& x);
/// x to a fixed integer power, negative ones included.
Traced integer_pow(const Traced& x, std::int64_t exponent);

// Activations, floating point. What they do at 0 and at infinity is in
// docs/theory/singular_points.md.

/// log(1 + exp(x)) without overflow.
Traced softplus(const Traced& x);
/// x logistic(x), also called swish.
Traced silu(const Traced& x);
/// x where it is positive, else 0; derivative 0 at 0.
Traced relu(const Traced& x);
/// x where it is positive, else slope x.
Traced leaky_relu(const Traced& x, double slope = 0.01);
/// x where it is positive, else alpha (exp(x) - 1).
Traced elu(const Traced& x, double alpha = 1);
/// x times the normal distribution function of x (erf), or that by its usual approximation.
enum class GeluForm : std::uint8_t { erf, tanh };
Traced gelu(const Traced& x, GeluForm form = GeluForm::erf);

// Elementwise functions of two tensors, or of a tensor and a number; shapes and
// dtypes as for the operators.

/// x to the power y, floating point.
Traced pow(const Traced& x, const Operand& y);
Traced pow(double x, const Traced& y);
/// The angle of the point (x, y).
Traced atan2(const Traced& y, const Operand& x);
Traced atan2(double y, const Traced& x);
/// Where the operands are equal, each has half of the derivative.
Traced max(const Traced& x, const Operand& y);
Traced max(double x, const Traced& y);
Traced min(const Traced& x, const Operand& y);
Traced min(double x, const Traced& y);
/// The remainder of x / y with the sign of x, as std::fmod.
Traced rem(const Traced& x, const Operand& y);
Traced rem(double x, const Traced& y);

/// min(max(x, low), high); where x equals a bound, both have half of the derivative.
Traced clamp(const Traced& x, const Operand& low, const Operand& high);

// Of bool tensors; bitwise of integers.
Traced logical_and(const Traced& x, const Operand& y);
Traced logical_or(const Traced& x, const Operand& y);
Traced logical_not(const Traced& x);

/// on_true where the bool tensor `condition` holds, else on_false, elementwise; the
/// traced `if`. Both are computed; what is not taken contributes nothing to a
/// derivative, even if it is infinite or NaN. At least one branch is a tensor.
Traced select(const Traced& condition, const Operand& on_true, const Operand& on_false);

/// Which axes dot_general sums over and which it keeps paired.
struct DotAxes {
  Axes lhs_contract;
  Axes rhs_contract;
  Axes lhs_batch = {};
  Axes rhs_batch = {};
};

/// The sum of products over the contracted axes, for each index of the batch axes.
/// Result shape: batch axes, other axes of lhs, other axes of rhs. Paired axes must
/// have equal extents.
Traced dot_general(const Traced& lhs, const Traced& rhs, const DotAxes& axes);
/// The product of two matrices or of a matrix and a vector, also of two vectors:
/// (m, k) (k, n) -> (m, n); (m, k) (k) -> (m); (k) (k, n) -> (n); (k) (k) -> ().
/// For higher ranks say with dot_general what is meant.
Traced matmul(const Traced& x, const Traced& y);
/// The inner product of two vectors: (n) (n) -> ().
Traced dot(const Traced& x, const Traced& y);

/// All axes in reverse order.
Traced transpose(const Traced& x);
/// Axis k of the result is axis permutation[k] of x.
Traced transpose(const Traced& x, const Axes& permutation);
/// The same elements, row-major, in a shape of equal element count.
Traced reshape(const Traced& x, const Shape& shape);
/// Axis k of x, of extent 1 or that of the result, lies along axis dimensions[k],
/// increasing; x is repeated along all others.
Traced broadcast_in_dim(const Traced& x, const Shape& shape, const Axes& dimensions);
/// x repeated to the shape by NumPy's rule: axes are matched from the last one.
Traced broadcast_to(const Traced& x, const Shape& shape);
/// Elements start, start + stride, ... below limit, one number for each axis.
Traced slice(const Traced& x, const Axes& start, const Axes& limit, const Axes& stride = {});
/// `value` (rank 0) in low[k] places before and high[k] after axis k, and interior[k]
/// between its elements. Negative low and high cut.
Traced pad(const Traced& x, const Operand& value, const Axes& low, const Axes& high,
           const Axes& interior = {});
/// The parts after one another along an axis; all other extents must agree.
Traced concatenate(const std::vector<Traced>& parts, std::int64_t axis);

/// The elements along these axes in the opposite order.
Traced reverse(const Traced& x, const Axes& axes);

/// x at `indices` (integers) along one axis, which is replaced by the axes of `indices`:
/// x [p, n, q] and indices [k, l] give [p, k, l, q] for axis 1. Outside of the axis
/// it reads 0.
Traced take(const Traced& x, const Traced& indices, std::int64_t axis = 0);
/// One element of x for each of `indices` (integers), along one axis: x and indices have the same shape but for
/// this axis, and result[i, j, k] is x[i, indices[i, j, k], k] for axis 1. Outside of the axis it reads 0.
Traced take_along_axis(const Traced& x, const Traced& indices, std::int64_t axis);
/// base with `updates` added at `indices` along one axis: the transpose of take. updates has
/// the shape of take(base, indices, axis); equal indices add up, those outside are dropped.
Traced scatter_add(const Traced& base, const Traced& indices, const Traced& updates, std::int64_t axis = 0);
/// 1 at the index along a new last axis of extent `depth`, else 0, so zeros for an index outside.
Traced one_hot(const Traced& indices, std::int64_t depth, DType dtype = DType::f32);

// Sorted order along an axis. Stable: equal elements keep their order, and the derivative
// of each place goes to the one element that stands there. NaN stands behind all numbers.

Traced sort(const Traced& x, std::int64_t axis = -1, bool descending = false);
/// The places (i64) that the elements of sort come from.
Traced argsort(const Traced& x, std::int64_t axis = -1, bool descending = false);
/// The k largest elements along the last axis, largest first: [..., n] to [..., k].
Traced top_k(const Traced& x, std::int64_t k);
/// The places (i64) that the elements of top_k come from.
Traced top_k_indices(const Traced& x, std::int64_t k);

// Functions of whole rows: of the elements along one axis, at all places of the others.

/// exp(x) over its sum; elements of -inf have the weight and the derivative 0, also where
/// there are no others.
Traced softmax(const Traced& x, std::int64_t axis = -1);
Traced log_softmax(const Traced& x, std::int64_t axis = -1);
/// (x - mean) / sqrt(variance + eps) along the last axis, times scale, plus bias, of shape
/// [n] each; the variance is that of the n elements.
Traced layer_norm(const Traced& x, double eps = 1e-5);
Traced layer_norm(const Traced& x, const Traced& scale, const Traced& bias, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) along the last axis, times scale, of shape [n].
Traced rms_norm(const Traced& x, double eps = 1e-5);
Traced rms_norm(const Traced& x, const Traced& scale, double eps = 1e-5);

/// How a scan runs.
struct ScanOptions {
  bool reverse = false;    ///< from the last element to the first
  bool exclusive = false;  ///< without the element at the place itself
};
/// Sums of the elements up to each place.
Traced cumsum(const Traced& x, std::int64_t axis = -1, const ScanOptions& options = {});
/// Products of the elements up to each place; derivatives divide by nothing.
Traced cumprod(const Traced& x, std::int64_t axis = -1, const ScanOptions& options = {});
/// y_i = a_i y_(i-1) + x_i from y_(-1) = 0, floating point; with `reverse` from the end. a and x
/// have equal ranks, with extents equal or 1.
Traced linear_recurrence(const Traced& a, const Traced& x, std::int64_t axis = -1, bool reverse = false);

// Linear algebra on the last two axes; the leading ones are a batch.

/// Which triangle of a matrix is read, and what is solved.
struct TriangularSolve {
  bool lower = true;
  bool transposed = false;     ///< a^T x = b
  bool unit_diagonal = false;  ///< the diagonal counts as 1 and is not read
};
/// The solution x of a x = b with a triangular, floating point: a [..., n, n], b [..., n, m]
/// or, for one right-hand side per matrix, [..., n]. A zero on the diagonal gives inf or NaN.
Traced triangular_solve(const Traced& a, const Traced& b, const TriangularSolve& options = {});
/// The lower triangle L with L L^T = (a + a^T)/2, for a [..., n, n]: of a symmetric a it is the
/// usual factor, and the derivative by a is symmetric. NaN where that is not positive definite.
Traced cholesky(const Traced& a);

// Reductions. The axes (by default all) disappear from the shape.

Traced sum(const Traced& x);
Traced sum(const Traced& x, const Axes& axes);
/// The sum divided by the number of elements that it is over; floating point.
Traced mean(const Traced& x);
Traced mean(const Traced& x, const Axes& axes);
/// Equal largest elements share the derivative.
Traced reduce_max(const Traced& x);
Traced reduce_max(const Traced& x, const Axes& axes);
Traced reduce_min(const Traced& x);
Traced reduce_min(const Traced& x, const Axes& axes);

Traced prod(const Traced& x);
Traced prod(const Traced& x, const Axes& axes);
/// Euclidean norm; squares neither overflow nor underflow, and the derivative at 0 is 0.
Traced norm(const Traced& x);
Traced norm(const Traced& x, const Axes& axes);
/// log(sum(exp(x))) without overflow; elements of -inf have the derivative 0.
Traced logsumexp(const Traced& x);
Traced logsumexp(const Traced& x, const Axes& axes);

/// To another element type: floating point to integer truncates, to bool tells
/// what is not 0. Records a node even if x has that type.
Traced convert(const Traced& x, DType dtype);
/// x as a constant: no derivative passes.
Traced stop_gradient(const Traced& x);

// Constants of the program that is being traced on this thread; UserError outside.

Traced constant(const Tensor& tensor);
/// A constant for rank 0, else a broadcast_in_dim node of one.
Traced full(const Shape& shape, double value, DType dtype);
Traced zeros(const Shape& shape, DType dtype);
Traced ones(const Shape& shape, DType dtype);
/// 0, 1, 2, ... along one axis.
Traced iota(const Shape& shape, std::int64_t axis, DType dtype);

/// An argument of a traced function.
struct Argument {
  std::string name;
  TensorType type;
};

/// What is traced: argument tensors in, result tensors out.
using TracedFunction = std::function<std::vector<Traced>(std::span<const Traced>)>;

namespace detail {

template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };

/// Results of the kinds that a traced function may return, nested as they like.
template <class Result>
void append_results(std::vector<Traced>& results, const Result& result) {
  if constexpr (std::same_as<Result, Traced>) {
    results.push_back(result);
  } else if constexpr (TupleLike<Result>) {
    std::apply([&](const auto&... parts) { (append_results(results, parts), ...); }, result);
  } else {
    static_assert(std::ranges::range<const Result>,
                  "a traced function returns Traced, or a tuple, pair, array or vector of Traced");
    for (const auto& part : result) append_results(results, part);
  }
}

[[noreturn]] void throw_wrong_argument_count(std::size_t parameters, std::size_t arguments);

/// A callable of `count` traced tensors as a TracedFunction.
template <std::size_t count, class Function>
TracedFunction pack_function(Function function) {
  return [function = std::move(function)](std::span<const Traced> arguments) {
    if (arguments.size() != count) throw_wrong_argument_count(count, arguments.size());
    std::vector<Traced> results;
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      append_results(results, std::invoke(function, arguments[k]...));
    }(std::make_index_sequence<count>());
    return results;
  };
}

}  // namespace detail

}  // namespace loipe
