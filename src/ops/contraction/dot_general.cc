// SPDX-License-Identifier: Apache-2.0
// The general product of two tensors: axes are batch (in both operands and the
// result), contracted (in both operands, summed) or free (in one operand and the
// result). Axes of the result: batch, free of lhs, free of rhs.
#include <algorithm>

#include "ops/elementwise/family.h"
#include "ops/elementwise/scalar.h"

namespace loipe::ops {

namespace {

/// Which axes of one operand are batch, contracted and free; the first two pair up
/// with those of the other operand by position.
struct Side {
  Integers batch, contracted, free;
};

Side side_of(const Attributes& attributes, std::string_view name, std::int64_t rank) {
  const std::string prefix(name);
  Side side{
      integers_or(attributes, prefix + "_batch", {}), integers_or(attributes, prefix + "_contract", {}), {}};
  const auto contains = [](const Integers& axes, std::int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  for (std::int64_t axis = 0; axis < rank; ++axis)
    if (!contains(side.batch, axis) && !contains(side.contracted, axis)) side.free.push_back(axis);
  return side;
}

void check_side(const Side& side, const std::string& name, std::int64_t rank) {
  expect_axes(name + "_batch", side.batch, rank);
  expect_axes(name + "_contract", side.contracted, rank);
  for (std::int64_t axis : side.batch)
    if (std::find(side.contracted.begin(), side.contracted.end(), axis) != side.contracted.end())
      throw UserError("axis " + std::to_string(axis) + " of " + name + " is both in " +
                      quoted(name + "_batch", side.batch) + " and in " +
                      quoted(name + "_contract", side.contracted));
}

/// Paired axes must be equally many and equally long.
void check_pairs(const char* kind, const Integers& lhs_axes, const Integers& rhs_axes, const Shape& lhs,
                 const Shape& rhs) {
  const std::string lhs_name = std::string("lhs_") + kind, rhs_name = std::string("rhs_") + kind;
  if (lhs_axes.size() != rhs_axes.size())
    throw UserError(quoted(lhs_name, lhs_axes) + " and " + quoted(rhs_name, rhs_axes) +
                    " must name equally many axes");
  for (std::size_t i = 0; i < lhs_axes.size(); ++i) {
    const std::int64_t lhs_extent = lhs[index_of(lhs_axes[i])], rhs_extent = rhs[index_of(rhs_axes[i])];
    if (lhs_extent != rhs_extent)
      throw UserError("axis " + std::to_string(lhs_axes[i]) + " of lhs has extent " +
                      std::to_string(lhs_extent) + ", but its partner in " + quoted(rhs_name, rhs_axes) +
                      ", axis " + std::to_string(rhs_axes[i]) + " of rhs, has extent " +
                      std::to_string(rhs_extent));
  }
}

TensorType infer_dot_general(const InferContext& c) {
  expect_attributes(c, {"lhs_batch", "lhs_contract", "rhs_batch", "rhs_contract"});
  const TensorType &lhs = c.operand(0), &rhs = c.operand(1);
  if (lhs.dtype != rhs.dtype || lhs.dtype == DType::boolean)
    throw UserError("operands have dtypes " + std::string(to_string(lhs.dtype)) + " and " +
                    std::string(to_string(rhs.dtype)) + ", expected one number type");
  const Side left = side_of(c.attributes, "lhs", lhs.rank()),
             right = side_of(c.attributes, "rhs", rhs.rank());
  check_side(left, "lhs", lhs.rank());
  check_side(right, "rhs", rhs.rank());
  check_pairs("batch", left.batch, right.batch, lhs.shape, rhs.shape);
  check_pairs("contract", left.contracted, right.contracted, lhs.shape, rhs.shape);
  TensorType type{lhs.dtype, {}};
  for (std::int64_t axis : left.batch) type.shape.push_back(lhs.shape[index_of(axis)]);
  for (std::int64_t axis : left.free) type.shape.push_back(lhs.shape[index_of(axis)]);
  for (std::int64_t axis : right.free) type.shape.push_back(rhs.shape[index_of(axis)]);
  return type;
}

/// A loop nest over batch, free of lhs, free of rhs, contracted.
struct LoopNest {
  Shape extents;
  std::array<View, 3> views;  ///< of lhs, rhs and the result

  void append(std::int64_t extent, std::int64_t lhs_stride, std::int64_t rhs_stride,
              std::int64_t out_stride) {
    extents.push_back(extent);
    views[0].strides.push_back(lhs_stride);
    views[1].strides.push_back(rhs_stride);
    views[2].strides.push_back(out_stride);
  }
};

LoopNest loop_nest(const EvaluateContext& c) {
  const Shape &lhs = c.operand(0).shape(), &rhs = c.operand(1).shape();
  const Side left = side_of(c.attributes, "lhs", c.operand(0).type().rank());
  const Side right = side_of(c.attributes, "rhs", c.operand(1).type().rank());
  const Integers lhs_strides = row_major_strides(lhs), rhs_strides = row_major_strides(rhs);
  const Integers out_strides = row_major_strides(c.type.shape);
  LoopNest nest;
  std::size_t out = 0;
  for (std::size_t i = 0; i < left.batch.size(); ++i) {
    const std::size_t axis = index_of(left.batch[i]);
    nest.append(lhs[axis], lhs_strides[axis], rhs_strides[index_of(right.batch[i])], out_strides[out++]);
  }
  for (std::int64_t axis : left.free)
    nest.append(lhs[index_of(axis)], lhs_strides[index_of(axis)], 0, out_strides[out++]);
  for (std::int64_t axis : right.free)
    nest.append(rhs[index_of(axis)], 0, rhs_strides[index_of(axis)], out_strides[out++]);
  for (std::size_t i = 0; i < left.contracted.size(); ++i) {
    const std::size_t axis = index_of(left.contracted[i]);
    nest.append(lhs[axis], lhs_strides[axis], rhs_strides[index_of(right.contracted[i])], 0);
  }
  return nest;
}

Tensor evaluate_dot_general(const EvaluateContext& c) {
  Tensor result(c.type);
  const LoopNest nest = loop_nest(c);
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const std::span<const T> lhs = c.operand(0).elements<T>(), rhs = c.operand(1).elements<T>();
      const std::span<T> out = result.elements<T>();
      for_each_index(nest.extents, nest.views, [&](const std::array<std::size_t, 3>& at) {
        out[at[2]] = scalar::add(out[at[2]], scalar::multiply(lhs[at[0]], rhs[at[1]]));
      });
    }
  });
  return result;
}

/// Labels of both operands: paired axes share one.
struct Labels {
  std::vector<Label> lhs, rhs, out;
};

Labels label_axes(JacobianContext& c, TermDraft& term) {
  const TensorType &lhs = c.operand_type(0), &rhs = c.operand_type(1);
  const Side left = side_of(c.attributes(), "lhs", lhs.rank()),
             right = side_of(c.attributes(), "rhs", rhs.rank());
  Labels labels{term.labels(lhs.shape), std::vector<Label>(rhs.shape.size()), {}};
  for (std::size_t i = 0; i < left.batch.size(); ++i)
    labels.rhs[index_of(right.batch[i])] = labels.lhs[index_of(left.batch[i])];
  for (std::size_t i = 0; i < left.contracted.size(); ++i)
    labels.rhs[index_of(right.contracted[i])] = labels.lhs[index_of(left.contracted[i])];
  for (std::int64_t axis : right.free) labels.rhs[index_of(axis)] = term.label(rhs.shape[index_of(axis)]);
  for (std::int64_t axis : left.batch) labels.out.push_back(labels.lhs[index_of(axis)]);
  for (std::int64_t axis : left.free) labels.out.push_back(labels.lhs[index_of(axis)]);
  for (std::int64_t axis : right.free) labels.out.push_back(labels.rhs[index_of(axis)]);
  return labels;
}

/// The product is linear in each operand: d(out)/d(lhs) is rhs, tied to the result
/// along batch axes and free axes of lhs; likewise by rhs.
LocalJacobian dot_general_jacobian(JacobianContext& c) {
  TermDraft term;
  const Labels labels = label_axes(c, term);
  const bool by_lhs = c.operand_index == 0;
  term.out(labels.out).in(by_lhs ? labels.lhs : labels.rhs);
  const Value other = c.operand(by_lhs ? 1 : 0);
  const Partial known = known_partial(c, other);
  if (known.coefficient == 0) return LocalJacobian::zero();
  term.coefficient(known.coefficient);
  if (known.value) term.value(*known.value, by_lhs ? labels.rhs : labels.lhs);
  return term.finish(c.builder);
}

OpCost dot_general_cost(const CostContext& c) {
  std::int64_t contracted = 1;
  for (std::int64_t axis : integers_or(c.attributes, "lhs_contract", {}))
    contracted *= c.operand(0).shape[index_of(axis)];
  const std::int64_t count = c.type.element_count();
  return {.multiplications = count * contracted,
          .additions = count * std::max<std::int64_t>(contracted - 1, 0)};
}

std::vector<Sample> dot_general_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape lhs, Shape rhs, Integers lhs_contract, Integers rhs_contract,
                          Integers lhs_batch = {}, Integers rhs_batch = {}) {
    const Draw draw = is_floating(dtype) ? Draw(between<-2.0, 2.0>) : Draw(small_integer);
    Attributes attributes{{"lhs_contract", std::move(lhs_contract)},
                          {"rhs_contract", std::move(rhs_contract)}};
    if (!lhs_batch.empty()) attributes.set("lhs_batch", std::move(lhs_batch));
    if (!rhs_batch.empty()) attributes.set("rhs_batch", std::move(rhs_batch));
    samples.push_back(
        {{draw_tensor(rng, dtype, std::move(lhs), draw), draw_tensor(rng, dtype, std::move(rhs), draw)},
         std::move(attributes)});
  };
  append(DType::f64, {}, {}, {}, {});
  append(DType::f64, {3}, {3}, {0}, {0});
  append(DType::f64, {2}, {3}, {}, {});
  append(DType::f64, {2, 3}, {3}, {1}, {0});
  append(DType::f64, {2, 3}, {3, 4}, {1}, {0});
  append(DType::f64, {3, 2}, {4, 3}, {0}, {1});
  append(DType::f64, {2, 1}, {1, 3}, {1}, {0});
  append(DType::f64, {2, 3}, {2, 3}, {1}, {1}, {0}, {0});
  append(DType::f64, {2, 3, 2}, {4, 2, 2}, {2}, {1}, {0}, {2});
  append(DType::f64, {2, 3}, {3, 2}, {0, 1}, {1, 0});
  append(DType::f64, {2, 3, 1}, {3, 2}, {}, {}, {1, 0}, {0, 1});
  append(DType::f64, {2, 0}, {0, 3}, {1}, {0});
  append(DType::f64, {0, 2}, {2, 3}, {1}, {0});
  append(DType::i32, {2, 3}, {3, 2}, {1}, {0});
  append(DType::i64, {2, 3}, {3, 2}, {1}, {0});
  return samples;
}

}  // namespace

constinit const OpDef op_dot_general{
    .name = "dot_general",
    .summary = "product summed over contracted axes; axes of the result: batch, free of lhs, free of rhs",
    .arity = kBinary,
    .infer = infer_dot_general,
    .evaluate = evaluate_dot_general,
    .jacobian = dot_general_jacobian,
    .cost = dot_general_cost,
    .samples = dot_general_samples,
    .tolerance = Tolerance::arithmetic,
    .jax_name = "dot_general",
    .onnx_name = "MatMul",
};

}  // namespace loipe::ops
