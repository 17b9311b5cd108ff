// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/error.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loipe {

/// Element types. Floating point is f32 and f64; bool is one byte, 0 or 1.
enum class DType : std::uint8_t { f32, f64, boolean, i32, i64 };

std::size_t size_of(DType dtype);
/// "f32", "f64", "bool", "i32", "i64".
std::string_view to_string(DType dtype);
/// The inverse of to_string; throws UserError for any other text.
DType parse_dtype(std::string_view text);
inline bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }
inline bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

/// Extents of the axes, outermost first; empty for a scalar. Extents may be 0.
using Shape = std::vector<std::int64_t>;

/// Number of elements: the product of the extents, 1 for a scalar.
std::int64_t element_count(std::span<const std::int64_t> shape);
/// "[4,4]", "[]" for a scalar.
std::string to_string(std::span<const std::int64_t> shape);

/// Element type and shape.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t element_count() const { return loipe::element_count(shape); }
  std::size_t byte_size() const { return static_cast<std::size_t>(element_count()) * size_of(dtype); }
  bool operator==(const TensorType&) const = default;
};

/// "f32[4,4]".
std::string to_string(const TensorType& type);

template <class T>
constexpr DType dtype_of() = delete;
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}

/// A dense row-major tensor in host memory that owns its elements (64-byte aligned).
class Tensor {
 public:
  Tensor() : Tensor(TensorType{}) {}
  /// All elements zero.
  explicit Tensor(TensorType type);
  /// Copies the elements, row-major; their number must fit the shape (UserError).
  template <class T>
  static Tensor of(Shape shape, std::span<const T> elements);
  template <class T>
  static Tensor of(Shape shape, std::initializer_list<T> elements) {
    return of<T>(std::move(shape), std::span<const T>(elements.begin(), elements.size()));
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, {value});
  }

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  std::int64_t element_count() const { return type_.element_count(); }

  /// The elements as T, which must be the dtype's type (UserError).
  template <class T>
  std::span<const T> elements() const;
  template <class T>
  std::span<T> elements();

  std::span<const std::byte> bytes() const;
  std::span<std::byte> bytes();

  /// The element at a row-major position as a double, whatever the dtype.
  double at(std::int64_t position) const;
  void set(std::int64_t position, double value);

  /// The same elements in another dtype (floating to integer truncates; to bool: non-zero).
  Tensor converted(DType dtype) const;

  /// Same type and bitwise the same elements.
  bool operator==(const Tensor& other) const;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  TensorType type_;
  std::vector<Line> storage_;
};

}  // namespace loipe
