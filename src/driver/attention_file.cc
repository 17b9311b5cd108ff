// SPDX-License-Identifier: Apache-2.0
#include "driver/attention_file.h"

#include <cmath>

#include "attention/polynomial/polynomial.h"
#include "base/text.h"
#include "driver/input_tensors.h"
#include "driver/model_metadata.h"

namespace loipe {

namespace {

std::string named(const std::string& tensor, const std::string& path) {
  return "tensor " + quote(tensor) + " of file " + quote(path);
}

Shape shape_of(const SafetensorsFile& file, const std::string& path, const std::string& name,
               const std::string& meaning) {
  if (!file.has(name))
    throw UserError("file " + quote(path) + " holds no tensor " + quote(name) + ", expected " + meaning +
                    did_you_mean(name, file.names()));
  const TensorType type = file.type(name);
  if (type.shape.size() != 3)
    throw UserError(named(name, path) + " is " + to_string(type) + ", expected " + meaning);
  return type.shape;
}

void expect_extent(std::int64_t extent, std::int64_t expected, const std::string& what,
                   const std::string& path) {
  if (extent != expected)
    throw UserError("file " + quote(path) + ": " + what + ", expected " + std::to_string(expected) +
                    ", found " + std::to_string(extent));
}

attention::Shape attention_shape(const SafetensorsFile& file, const std::string& path) {
  const Shape q = shape_of(file, path, "Q", "[heads, queries, head_size]");
  const Shape k = shape_of(file, path, "K", "[kv_heads, keys, head_size]");
  const Shape v = shape_of(file, path, "V", "[kv_heads, keys, value_size]");
  const Shape g = shape_of(file, path, "G", "the cotangent of O [heads, queries, value_size]");
  expect_extent(k[2], q[2], "K has another head size (last axis) than Q", path);
  expect_extent(v[0], k[0], "V has another number of heads (first axis) than K", path);
  expect_extent(v[1], k[1], "V has another number of keys (second axis) than K", path);
  expect_extent(g[0], q[0], "G has another number of heads (first axis) than Q", path);
  expect_extent(g[1], q[1], "G has another number of queries (second axis) than Q", path);
  expect_extent(g[2], v[2], "G has another value size (last axis) than V", path);
  if (k[0] == 0 ? q[0] != 0 : q[0] % k[0] != 0)
    throw UserError("file " + quote(path) + ": the " + std::to_string(k[0]) +
                    " heads of K and V do not divide the " + std::to_string(q[0]) + " heads of Q");
  if (q[2] == 0) throw UserError(named("Q", path) + " has head size 0 (last axis), expected at least 1");
  return {q[0], k[0], q[1], k[1], q[2], v[2]};
}

/// Empty when there is none.
std::vector<std::uint8_t> key_mask_of(const SafetensorsFile& file, const std::string& path,
                                      std::int64_t keys) {
  if (!file.has("key_mask")) return {};
  const Tensor mask = file.tensor("key_mask");
  if (mask.shape() != Shape{keys} || is_floating(mask.dtype()))
    throw UserError(named("key_mask", path) + " is " + to_string(mask.type()) +
                    ", expected integers or booleans of shape [" + std::to_string(keys) +
                    "], one for each key");
  std::vector<std::uint8_t> allowed;
  for (std::int64_t j = 0; j < keys; ++j) {
    if (mask.at(j) != 0 && mask.at(j) != 1)
      throw UserError(named("key_mask", path) + " has " +
                      std::to_string(static_cast<std::int64_t>(mask.at(j))) + " at [" + std::to_string(j) +
                      "], expected 0 or 1");
    allowed.push_back(mask.at(j) != 0);
  }
  return allowed;
}

/// Empty when there is none.
std::vector<double> polynomial_of(const SafetensorsFile& file, const std::string& path) {
  if (!file.has("coef")) return {};
  const Tensor coefficients = file.tensor("coef");
  constexpr std::int64_t kMost = attention::polynomial::kMaxDegree + 1;
  const std::int64_t count = coefficients.element_count();
  if (coefficients.shape().size() != 1 || !is_floating(coefficients.dtype()) || count < 2 || count > kMost)
    throw UserError(named("coef", path) + " is " + to_string(coefficients.type()) + ", expected the 2 to " +
                    std::to_string(kMost) + " coefficients of a polynomial, that of x^0 first");
  check_finite("file " + quote(path), "coef", coefficients);
  std::vector<double> result;
  for (std::int64_t p = 0; p < count; ++p) result.push_back(coefficients.at(p));
  return result;
}

DType default_dtype_of(const SafetensorsFile& file, const std::string& path) {
  DType widest = DType::f32;
  for (const char* name : {"Q", "K", "V", "G"}) {
    const DType dtype = file.type(name).dtype;
    if (!is_floating(dtype))
      throw UserError(named(name, path) + " is " + to_string(file.type(name)) + ", expected f32 or f64");
    if (dtype == DType::f64) widest = DType::f64;
  }
  return widest;
}

}  // namespace

AttentionFile::AttentionFile(const std::string& path, const AttentionOverrides& overrides, int threads)
    : file_(SafetensorsFile::read(path)), path_(path) {
  const ModelMetadata metadata(file_, "file " + quote(path));
  request_.shape = attention_shape(file_, path);
  const attention::Shape& s = request_.shape;
  for (const auto& [key, extent] : {std::pair{"heads", s.heads}, std::pair{"kv_heads", s.kv_heads}})
    if (metadata.has(key))
      expect_extent(metadata.integer(key, 0), extent, std::string("metadata ") + key + " and shapes differ",
                    path);
  request_.is_causal = metadata.flag_or("causal", false) || overrides.is_causal;
  const std::optional<double> stored_scale = metadata.number("scale");
  request_.scale = overrides.scale ? *overrides.scale
                                   : stored_scale.value_or(1 / std::sqrt(static_cast<double>(s.head_size)));
  const std::int64_t stored_window = metadata.integer_or("window", 0, 0);
  request_.window = overrides.window.value_or(stored_window);
  const DType stored_dtype = default_dtype_of(file_, path);
  request_.dtype = overrides.dtype.value_or(stored_dtype);
  if (overrides.scale || stored_scale) check_scale(request_.scale, request_.dtype);
  request_.key_mask = key_mask_of(file_, path, s.keys);
  request_.threads = threads;
  request_.settings = overrides.settings;
  request_.repetitions = overrides.repetitions;
  check_settings(request_.settings, request_.shape);
  request_.polynomial = polynomial_of(file_, path);
  for (double coefficient : request_.polynomial)
    if (request_.dtype == DType::f32 && !std::isfinite(static_cast<float>(coefficient)))
      throw UserError(named("coef", path) + " has " + format_double(coefficient) +
                      ", which is infinite in f32; expected smaller coefficients or --dtype f64");
  if (!request_.polynomial.empty() && request_.window > 0)
    throw Unsupported("file " + quote(path) + " holds \"coef\" and a window of " +
                      std::to_string(request_.window) +
                      " keys: polynomial attention has no window; expected metadata window 0");
}

AttentionInputs AttentionFile::load() const {
  const std::vector<std::string> names{"Q", "K", "V", "G"};
  std::vector<TensorType> types;
  for (const std::string& name : names) types.push_back({request_.dtype, file_.type(name).shape});
  std::vector<Tensor> tensors = load_tensors(file_, path_, names, types);
  for (std::size_t i = 0; i < names.size(); ++i) check_finite("file " + quote(path_), names[i], tensors[i]);
  return {std::move(tensors[0]), std::move(tensors[1]), std::move(tensors[2]), std::move(tensors[3])};
}

}  // namespace loipe
