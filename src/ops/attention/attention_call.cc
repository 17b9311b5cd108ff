// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_call.h"

#include <algorithm>

#include "ops/shape_checks.h"

namespace loipe::ops {

namespace {

bool flag(const Attributes& attributes, std::string_view name) {
  if (!attributes.has(name)) return false;
  const std::int64_t value = attributes.integer(name);
  if (value != 0 && value != 1)
    throw UserError(std::string(name) + " is " + std::to_string(value) + ", expected 0 or 1");
  return value == 1;
}

[[noreturn]] void throw_operand(std::string_view what, const TensorType& type, const std::string& expected) {
  throw UserError(std::string(what) + " is " + to_string(type) + ", expected " + expected);
}

void expect_operand(std::string_view what, const TensorType& type, const TensorType& expected) {
  if (type != expected) throw_operand(what, type, to_string(expected));
}

bool repeats_to(const Shape& shape, const Shape& full, std::size_t exact_from) {
  if (shape.size() != full.size()) return false;
  for (std::size_t i = 0; i < full.size(); ++i)
    if (shape[i] != full[i] && (shape[i] != 1 || i >= exact_from)) return false;
  return true;
}

void read_sizes(AttentionCall& call, std::span<const TensorType* const> operands) {
  const TensorType &q = *operands[0], &k = *operands[1], &v = *operands[2];
  if (!is_floating(q.dtype) || q.rank() != 4)
    throw_operand("q", q, "floating point of shape [heads, groups, queries, head size]");
  if (k.rank() != 3 || v.rank() != 3)
    throw_operand(k.rank() != 3 ? "k" : "v", k.rank() != 3 ? k : v, "a shape [heads, keys, size]");
  call.dtype = q.dtype;
  call.heads = q.shape[0], call.groups = q.shape[1], call.queries = q.shape[2], call.head_size = q.shape[3];
  call.keys = k.shape[1], call.value_size = v.shape[2];
  expect_operand("k", k, {q.dtype, {call.heads, call.keys, call.head_size}});
  expect_operand("v", v, {q.dtype, {call.heads, call.keys, call.value_size}});
}

void read_optional(AttentionCall& call, std::span<const TensorType* const> operands, bool has_mask,
                   bool has_bias) {
  call.primal_count = 3;
  if (has_mask) {
    const TensorType& mask = *operands[3];
    if (mask.dtype != DType::boolean || !repeats_to(mask.shape, {call.heads, call.keys}, 1))
      throw_operand("mask", mask,
                    "bool of shape " + to_string(Shape{call.heads, call.keys}) +
                        (call.heads == 1 ? "" : " or " + to_string(Shape{1, call.keys})));
    call.mask = call.primal_count++;
  }
  if (has_bias) {
    const TensorType& bias = *operands[call.primal_count];
    const Shape full{call.heads, call.groups, call.queries, call.keys};
    if (bias.dtype != call.dtype || !repeats_to(bias.shape, full, 3))
      throw_operand("bias", bias,
                    to_string(TensorType{call.dtype, full}) + ", where leading extents may be 1");
    call.bias_shape = bias.shape;
    call.bias = call.primal_count++;
  }
}

std::vector<attention::approximate::Settings> approximations_of(const Attributes& attributes,
                                                                std::int64_t heads) {
  std::vector<attention::approximate::Settings> result;
  if (!attributes.has("approximate")) return result;
  std::string_view rest = attributes.text("approximate");
  for (bool is_last = false; !is_last;) {
    const std::size_t end = rest.find(';');
    is_last = end == rest.npos;
    result.push_back(attention::approximate::parse_settings(rest.substr(0, end)));
    if (!is_last) rest.remove_prefix(end + 1);
  }
  if (result.size() == 1) result.resize(static_cast<std::size_t>(heads), result[0]);
  if (std::ssize(result) != heads)
    throw UserError("approximate has settings for " + std::to_string(result.size()) +
                    " heads of keys, expected one for all, or one for each of the " + std::to_string(heads));
  return result;
}

}  // namespace

AttentionCall AttentionCall::of(std::span<const TensorType* const> operands, const Attributes& attributes) {
  AttentionCall call{};
  const bool has_mask = flag(attributes, "mask"), has_bias = flag(attributes, "bias");
  const std::size_t fewest = 3 + std::size_t{has_mask} + std::size_t{has_bias};
  if (operands.size() < fewest)
    throw UserError(std::to_string(operands.size()) + " operands, expected q, k, v" +
                    (has_mask ? ", mask" : "") + (has_bias ? ", bias" : ""));
  read_sizes(call, operands);
  read_optional(call, operands, has_mask, has_bias);
  call.scale = attributes.number("scale");
  call.is_causal = flag(attributes, "causal");
  call.window = attributes.has("window") ? attributes.integer("window") : 0;
  if (call.window < 0)
    throw UserError("window is " + std::to_string(call.window) + ", expected a number of keys, or 0 for all");
  call.approximations = approximations_of(attributes, call.heads);
  for (const attention::approximate::Settings& settings : call.approximations)
    check_settings(settings, {call.heads * call.groups, call.heads, call.queries, call.keys, call.head_size,
                              call.value_size});
  return call;
}

Shape AttentionCall::shape_of(AttentionLetter letter) const {
  switch (letter) {
    case 'q': return {heads, groups, queries, head_size};
    case 'k': return {heads, keys, head_size};
    case 'v': return {heads, keys, value_size};
    default: return bias_shape;
  }
}

std::size_t AttentionCall::operand_of(AttentionLetter letter) const {
  constexpr std::string_view kLetters = "qkv";
  const std::size_t place = kLetters.find(letter);
  return place != kLetters.npos ? place : *bias;
}

AttentionLetter AttentionCall::letter_of(std::size_t operand) const {
  return operand < 3 ? "qkv"[operand] : 'b';
}

std::int64_t AttentionCall::elements(std::string_view letters) const {
  std::int64_t count = 0;
  for (AttentionLetter letter : letters) count += element_count(shape_of(letter));
  return count;
}

std::int64_t AttentionCall::pairs() const {
  std::int64_t allowed = 0;
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t first = window == 0 ? 0 : std::max<std::int64_t>(i - window + 1, 0);
    const std::int64_t reach = is_causal ? i + 1 : window == 0 ? keys : i + window;
    allowed += std::max<std::int64_t>(std::min(reach, keys) - first, 0);
  }
  return heads * groups * allowed;
}

std::string attention_letters(const AttentionCall& call, const Attributes& attributes,
                              std::string_view name) {
  const std::string& letters = attributes.text(name);
  for (std::string_view known : {"q", "k", "v", "qkv", "b"})
    if (letters == known && (letters != "b" || call.bias)) return letters;
  throw UserError(std::string(name) + " is \"" + letters + "\", expected \"q\", \"k\", \"v\", \"qkv\"" +
                  (call.bias ? " or \"b\"" : ""));
}

std::int64_t expect_directions(const InferContext& c, std::size_t first, std::span<const Shape> shapes) {
  if (c.operands.size() != first + shapes.size())
    throw UserError(std::to_string(c.operands.size()) + " operands, expected " +
                    std::to_string(first + shapes.size()));
  const std::int64_t directions = c.operand(first).rank() > 0 ? c.operand(first).shape[0] : 1;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    TensorType expected{c.operand(0).dtype, {directions}};
    expected.shape.insert(expected.shape.end(), shapes[i].begin(), shapes[i].end());
    expect_operand("operand " + std::to_string(first + i), c.operand(first + i), expected);
  }
  return directions;
}

}  // namespace loipe::ops
