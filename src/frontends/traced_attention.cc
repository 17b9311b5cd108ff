// SPDX-License-Identifier: Apache-2.0
#include <loipe/attention.h>

#include <cmath>

#include "base/text.h"
#include "frontends/approximation_text.h"
#include "frontends/trace.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

[[noreturn]] void refuse(const Traced& q, const Traced& k, const Traced& v, const std::string& why) {
  throw UserError(describe_call("attention", {q, k, v}) + ": " + why);
}

Shape with_front(Shape shape, std::size_t rank) {
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  return shape;
}

/// Operands in the shapes of the op: a head of keys, the queries that read it.
struct Folded {
  std::vector<Traced> operands;
  Attributes attributes;
};

Folded folded(const Traced& q, const Traced& k, const Traced& v, const AttentionOptions& options) {
  if ((q.rank() != 2 && q.rank() != 3) || k.rank() != q.rank() || v.rank() != q.rank())
    refuse(q, k, v,
           "expected q [heads, queries, d], k [key heads, keys, d], v [key heads, keys, e], or all without "
           "heads");
  const Shape qs = with_front(q.shape(), 3), ks = with_front(k.shape(), 3), vs = with_front(v.shape(), 3);
  if (ks[0] == 0 || qs[0] % ks[0] != 0) refuse(q, k, v, "the heads of q must be a multiple of those of k");
  if (qs[2] == 0) refuse(q, k, v, "the head size is 0, expected at least 1");
  if (options.scale && !std::isfinite(*options.scale))
    refuse(q, k, v, "scale is " + format_double(*options.scale) + ", expected a finite number");
  const std::int64_t groups = qs[0] / ks[0];
  Folded result{{reshape(q, {ks[0], groups, qs[1], qs[2]}), reshape(k, ks), reshape(v, vs)}, {}};
  const double scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(qs[2]));
  result.attributes.set("scale", scale);
  result.attributes.set("causal", std::int64_t{options.causal});
  if (options.approximation.size() > 1 && std::ssize(options.approximation) != ks[0])
    refuse(q, k, v,
           "there are " + std::to_string(options.approximation.size()) +
               " approximations, expected one for all heads, or one for each of the " +
               std::to_string(ks[0]) + " heads of k");
  if (std::string text = approximation_text(options.approximation); !text.empty())
    result.attributes.set("approximate", std::move(text));
  if (options.window != 0) result.attributes.set("window", options.window);
  if (options.key_mask) {
    result.operands.push_back(reshape(*options.key_mask, with_front(options.key_mask->shape(), 2)));
    result.attributes.set("mask", std::int64_t{1});
  }
  if (options.bias) {
    Shape shape = with_front(options.bias->shape(), 3);
    if (shape.size() != 3 || (shape[0] != 1 && shape[0] != qs[0]))
      refuse(q, k, v,
             "the bias is " + to_string(options.bias->type()) +
                 ", expected [queries, keys] or [heads, queries, keys]");
    const Shape heads = shape[0] == 1 ? Shape{1, 1} : Shape{ks[0], groups};
    shape.erase(shape.begin());
    shape.insert(shape.begin(), heads.begin(), heads.end());
    result.operands.push_back(reshape(*options.bias, shape));
    result.attributes.set("bias", std::int64_t{1});
  }
  return result;
}

}  // namespace

AttentionResult attention_with_lse(const Traced& q, const Traced& k, const Traced& v,
                                   const AttentionOptions& options) {
  const Folded call = folded(q, k, v, options);
  const Traced both = emit(ops::op_attention, call.operands, call.attributes);
  const Shape shape = both.shape();
  Shape outputs = q.shape(), rows = q.shape();
  outputs.back() = shape[3] - 1;
  rows.pop_back();
  Axes last = shape, first = shape;
  last[3] -= 1;
  return {reshape(slice(both, {0, 0, 0, 0}, last), outputs),
          reshape(slice(both, {0, 0, 0, last[3]}, first), rows)};
}

Traced attention(const Traced& q, const Traced& k, const Traced& v, const AttentionOptions& options) {
  return attention_with_lse(q, k, v, options).output;
}

}  // namespace loipe
