// SPDX-License-Identifier: Apache-2.0
#include "backends/c/helpers.h"

#include <utility>

#include "backends/c/expression.h"
#include "base/check.h"

namespace loipe::c {

namespace {

const Helper& find_helper(std::string_view name) {
  for (const auto helpers : {integer_helpers(), row_helpers(), attention_helpers()})
    for (const Helper& helper : helpers)
      if (helper.name == name) return helper;
  throw InternalError("there is no helper '" + std::string(name) + "' in C");
}

std::string replaced(std::string text, std::string_view token, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(token, at)) != text.npos; at += by.size())
    text.replace(at, token.size(), by);
  return text;
}

std::string instance(std::string_view text, const std::string& prefix, DType dtype) {
  const bool is_wide = dtype == DType::i64;
  const std::pair<std::string_view, std::string> tokens[] = {
      {"$T", type_of(dtype)},
      {"$U", is_wide ? "uint64_t" : "uint32_t"},
      {"$S", std::string(to_string(dtype))},
      {"$F", dtype == DType::f32 ? "f" : ""},
      {"$LEAST", is_wide ? "INT64_MIN" : "INT32_MIN"},
      {"$MOST", is_wide ? "INT64_MAX" : "INT32_MAX"},
      {"$IS_NAN", is_floating(dtype) ? "isnan" : "0 && "},
      {"$P", prefix},
  };
  std::string result(text);
  for (const auto& [token, by] : tokens) result = replaced(std::move(result), token, by);
  return result;
}

}  // namespace

std::string Helpers::use(std::string_view name, DType dtype) {
  const std::string function = prefix_ + "_" + std::string(name) + "_" + std::string(to_string(dtype));
  if (!written_.insert(function).second) return function;
  const Helper& helper = find_helper(name);
  for (std::string_view callee : helper.needs) use(callee, dtype);
  text_ += instance(helper.text, prefix_, dtype) + "\n";
  return function;
}

}  // namespace loipe::c
