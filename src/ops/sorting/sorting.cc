// SPDX-License-Identifier: Apache-2.0
// sort and top_k along the last axis, and the places that their entries come from. The
// order is stable: equal entries keep their order, and so each place of the result has one
// entry that its derivative goes to. NaN stands behind all numbers.
#include <algorithm>
#include <numeric>

#include "ops/normalization/family.h"
#include "ops/sorting/permutation.h"

namespace loipe::ops {

namespace {

bool is_descending(const Attributes& attributes) { return attributes.integer("descending") != 0; }

/// Places of a row's entries in sorted order.
template <class T>
std::vector<std::int64_t> sorted_places(std::span<const T> row, bool descending) {
  std::vector<std::int64_t> places(row.size());
  std::iota(places.begin(), places.end(), 0);
  std::sort(places.begin(), places.end(), [&](std::int64_t i, std::int64_t j) {
    const T x = row[index_of(i)], y = row[index_of(j)];
    const bool x_is_nan = x != x, y_is_nan = y != y;
    if (x_is_nan != y_is_nan) return y_is_nan;
    if (x == y || x_is_nan) return i < j;
    return descending ? x > y : x < y;
  });
  return places;
}

/// For each row, its first `kept` places in sorted order.
template <class Visit>
void for_each_sorted_row(const Tensor& x, bool descending, std::int64_t kept, const Visit& visit) {
  visit_dtype(x.dtype(), [&]<class T>(T) {
    const std::span<const T> all = x.elements<T>();
    std::int64_t next = 0;
    for_each_row(x.type(), [&](std::int64_t first, std::int64_t n) {
      const auto places = sorted_places(all.subspan(index_of(first), index_of(n)), descending);
      for (std::int64_t i = 0; i < kept; ++i) visit(next++, first, places[index_of(i)]);
    });
  });
}

TensorType sortable(const InferContext& c, std::string_view attribute) {
  expect_attributes(c, {attribute});
  const TensorType& x = c.operand(0);
  if (x.dtype == DType::boolean || x.shape.empty())
    throw UserError("operand is " + to_string(x) +
                    ", expected a number type with at least one axis; the op sorts along the last one");
  return x;
}

TensorType infer_sort(const InferContext& c) {
  const TensorType type = sortable(c, "descending");
  is_descending(c.attributes);
  return type;
}

TensorType infer_top_k(const InferContext& c) {
  TensorType type = sortable(c, "k");
  const std::int64_t k = c.attributes.integer("k");
  if (k < 0 || k > type.shape.back())
    throw UserError("k is " + std::to_string(k) + ", expected a number of entries of the last axis, 0 to " +
                    std::to_string(type.shape.back()));
  type.shape.back() = k;
  return type;
}

template <TensorType (*infer)(const InferContext&)>
TensorType infer_places(const InferContext& c) {
  return {DType::i64, infer(c).shape};
}

/// sort has `descending`, top_k is always so.
bool descends(const Attributes& attributes) { return attributes.has("k") || is_descending(attributes); }

Tensor evaluate_values(const EvaluateContext& c) {
  Tensor result(c.type);
  const Tensor& x = c.operand(0);
  visit_dtype(x.dtype(), [&]<class T>(T) {
    const std::span<const T> in = x.elements<T>();
    const std::span<T> out = result.elements<T>();
    for_each_sorted_row(x, descends(c.attributes), c.type.shape.back(),
                        [&](std::int64_t to, std::int64_t first, std::int64_t place) {
                          out[index_of(to)] = in[index_of(first + place)];
                        });
  });
  return result;
}

Tensor evaluate_places(const EvaluateContext& c) {
  Tensor result(c.type);
  const std::span<std::int64_t> out = result.elements<std::int64_t>();
  for_each_sorted_row(c.operand(0), descends(c.attributes), c.type.shape.back(),
                      [&](std::int64_t to, std::int64_t, std::int64_t place) { out[index_of(to)] = place; });
  return result;
}

/// Entry i of a row comes from the place that the index array says.
LocalJacobian top_k_jacobian(JacobianContext& c) {
  if (c.type().element_count() == 0) return LocalJacobian::zero();
  TermDraft term;
  const std::vector<Label> labels = term.labels(c.type().shape);
  Coordinate from;
  from.index = IndexArray{labels, nullptr,
                          c.builder.emit(op_top_k_indices, {c.operand()}, Attributes(c.attributes()))};
  term.out(labels).in({labels.begin(), labels.end() - 1}).in_axis(std::move(from));
  return term.finish(c.builder);
}

/// Entries at least 1/4 apart, so that a small step changes no order.
std::vector<Sample> sortable_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (const Shape& shape : row_shapes())
    samples.push_back({{draw_tensor(rng, DType::f64, shape, small_integer)}, {}});
  for (Sample& sample : samples)
    for (std::int64_t i = 0; i < sample.operands[0].element_count(); ++i)
      sample.operands[0].set(i, static_cast<double>(i * 5 % 13) * 0.25);
  samples.push_back({{draw_tensor(rng, DType::i32, {5}, small_integer)}, {}});
  return samples;
}

std::vector<Sample> sort_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (std::int64_t descending : {0, 1})
    for (Sample& sample : sortable_samples(rng)) {
      sample.attributes.set("descending", descending);
      samples.push_back(std::move(sample));
    }
  return samples;
}

std::vector<Sample> top_k_samples(Rng& rng) {
  std::vector<Sample> samples = sortable_samples(rng);
  for (Sample& sample : samples)
    sample.attributes.set("k", std::min<std::int64_t>(2, sample.operands[0].shape().back()));
  return samples;
}

std::vector<Sample> ties(const Attributes& attributes) {
  return {{{Tensor::of<double>({3}, {2, 1, 2})}, attributes},
          {{Tensor::of<double>({3}, {std::nan(""), 1, 2})}, attributes}};
}

}  // namespace

constinit const OpDef op_argsort{
    .name = "argsort",
    .summary = "the places along the last axis that the entries of sort come from",
    .arity = kUnary,
    .infer = infer_places<infer_sort>,
    .evaluate = evaluate_places,
    .jacobian = zero_jacobian,
    .cost = cost_free,
    .samples = sort_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "argsort",
};

constinit const OpDef op_sort{
    .name = "sort",
    .summary = "the entries of the last axis in ascending, or descending, order; stable, NaN last",
    .arity = kUnary,
    .infer = infer_sort,
    .evaluate = evaluate_values,
    .jacobian =
        [](JacobianContext& c) {
          const Value places = c.builder.emit(op_argsort, {c.operand()}, Attributes(c.attributes()));
          return permutation_jacobian(c, places);
        },
    .cost = cost_free,
    .samples = sort_samples,
    .tolerance = Tolerance::exact,
    .special_points = [](Rng&) { return ties({{"descending", std::int64_t{0}}}); },
    .jax_name = "sort",
};

constinit const OpDef op_top_k_indices{
    .name = "top_k_indices",
    .summary = "the places along the last axis that the entries of top_k come from",
    .arity = kUnary,
    .infer = infer_places<infer_top_k>,
    .evaluate = evaluate_places,
    .jacobian = zero_jacobian,
    .cost = cost_free,
    .samples = top_k_samples,
    .tolerance = Tolerance::exact,
};

constinit const OpDef op_top_k{
    .name = "top_k",
    .summary = "the k largest entries of the last axis in descending order; stable, NaN last",
    .arity = kUnary,
    .infer = infer_top_k,
    .evaluate = evaluate_values,
    .jacobian = top_k_jacobian,
    .cost = cost_free,
    .samples = top_k_samples,
    .tolerance = Tolerance::exact,
    .special_points = [](Rng&) { return ties({{"k", std::int64_t{2}}}); },
    .jax_name = "top_k",
    .onnx_name = "TopK",
};

}  // namespace loipe::ops
