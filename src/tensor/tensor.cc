// SPDX-License-Identifier: Apache-2.0
#include <loipe/tensor.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/large_pages.h"
#include "tensor/visit.h"

namespace loipe {

std::size_t size_of(DType dtype) {
  return visit_dtype(dtype, []<class T>(T) { return sizeof(T); });
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::boolean: return "bool";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
  }
  throw InternalError("unknown dtype");
}

DType parse_dtype(std::string_view text) {
  for (DType dtype : {DType::f32, DType::f64, DType::boolean, DType::i32, DType::i64})
    if (to_string(dtype) == text) return dtype;
  throw UserError("unknown dtype '" + std::string(text) + "': expected f32, f64, bool, i32 or i64");
}

std::int64_t element_count(std::span<const std::int64_t> shape) {
  // An extent of 0 makes no other one harmless: strides are products of them all.
  std::int64_t count = 1;
  bool is_empty = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) throw UserError("shape " + to_string(shape) + " has a negative extent");
    if (extent == 0) is_empty = true;
    else if (count > std::numeric_limits<std::int64_t>::max() / 16 / extent)
      throw ResourceError("shape " + to_string(shape) + " has more elements than can be addressed");
    else count *= extent;
  }
  return is_empty ? 0 : count;
}

std::string to_string(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    text += (axis ? "," : "") + std::to_string(shape[axis]);
  return text + "]";
}

std::string to_string(const TensorType& type) {
  return std::string(to_string(type.dtype)) + to_string(type.shape);
}

Tensor::Tensor(TensorType type) : type_(std::move(type)) {
  storage_.reserve((type_.byte_size() + 63) / 64);
  ask_for_large_pages(storage_.data(), type_.byte_size());
  storage_.resize((type_.byte_size() + 63) / 64);
}

std::span<const std::byte> Tensor::bytes() const {
  return {reinterpret_cast<const std::byte*>(storage_.data()), type_.byte_size()};
}

std::span<std::byte> Tensor::bytes() {
  return {reinterpret_cast<std::byte*>(storage_.data()), type_.byte_size()};
}

template <class T>
std::span<const T> Tensor::elements() const {
  if (dtype() != dtype_of<T>())
    throw UserError("tensor of dtype " + std::string(to_string(dtype())) + " read as " +
                    std::string(to_string(dtype_of<T>())));
  return {reinterpret_cast<const T*>(storage_.data()), static_cast<std::size_t>(element_count())};
}

template <class T>
std::span<T> Tensor::elements() {
  auto view = static_cast<const Tensor*>(this)->elements<T>();
  return {const_cast<T*>(view.data()), view.size()};
}

template <class T>
Tensor Tensor::of(Shape shape, std::span<const T> elements) {
  Tensor result(TensorType{dtype_of<T>(), std::move(shape)});
  if (static_cast<std::int64_t>(elements.size()) != result.element_count())
    throw UserError("shape " + to_string(result.shape()) + " wants " +
                    std::to_string(result.element_count()) + " elements, got " +
                    std::to_string(elements.size()));
  if (!elements.empty()) std::memcpy(result.bytes().data(), elements.data(), elements.size_bytes());
  return result;
}

double Tensor::at(std::int64_t position) const {
  return visit_dtype(dtype(), [&]<class T>(T) {
    return static_cast<double>(elements<T>()[static_cast<std::size_t>(position)]);
  });
}

void Tensor::set(std::int64_t position, double value) {
  visit_dtype(dtype(), [&]<class T>(T) {
    elements<T>()[static_cast<std::size_t>(position)] = element_cast<T>(value);
  });
}

Tensor Tensor::converted(DType to) const {
  if (to == dtype()) return *this;
  Tensor result(TensorType{to, shape()});
  visit_dtype(dtype(), [&]<class From>(From) {
    visit_dtype(to, [&]<class To>(To) {
      auto source = elements<From>();
      auto target = result.elements<To>();
      for (std::size_t i = 0; i < source.size(); ++i) target[i] = element_cast<To>(source[i]);
    });
  });
  return result;
}

bool Tensor::operator==(const Tensor& other) const {
  if (type_ != other.type_) return false;
  auto a = bytes();
  auto b = other.bytes();
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

#define LOIPE_INSTANTIATE(T)                               \
  template std::span<const T> Tensor::elements<T>() const; \
  template std::span<T> Tensor::elements<T>();             \
  template Tensor Tensor::of<T>(Shape, std::span<const T>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
LOIPE_INSTANTIATE(bool)
LOIPE_INSTANTIATE(std::int32_t)
LOIPE_INSTANTIATE(std::int64_t)
#undef LOIPE_INSTANTIATE

}  // namespace loipe
