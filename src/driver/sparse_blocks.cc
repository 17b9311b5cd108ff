// SPDX-License-Identifier: Apache-2.0
#include "driver/sparse_blocks.h"

#include "ops/emit.h"

namespace loipe {

namespace {

/// A dense block of shape [axes] + output + argument, and of its elements those of the pattern.
Value entries_of(Builder& builder, Value block, const SparsePattern& pattern, bool has_axis) {
  const std::int64_t size = pattern.row_count * pattern.column_count, count = pattern.entry_count();
  Shape axis;
  if (has_axis) axis.push_back(builder.shape(block)[0]);
  const auto with_axis = [&](std::int64_t extent) {
    Shape shape = axis;
    shape.push_back(extent);
    return shape;
  };
  const Value flat = ops::reshape(builder, block, with_axis(size));
  if (count == size) return flat;
  Tensor places(TensorType{DType::i64, {count}});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto entry = static_cast<std::size_t>(i);
    places.elements<std::int64_t>()[entry] =
        pattern.rows[entry] * pattern.column_count + pattern.columns[entry];
  }
  const Value index = builder.constant(std::move(places));
  return builder.emit(
      "gather", {flat, index},
      {{"extents", with_axis(count)}, {"from", std::string(has_axis ? "a, #1[b]" : "#1[a]")}});
}

}  // namespace

SparsePattern block_pattern(const Program& primal, const AccumulationRequest& request,
                            const Accumulation& accumulation, std::size_t output, std::size_t k) {
  const std::size_t argument = request.wrt[k];
  const Shape& out = primal.shape(primal.outputs()[output]);
  Shape in = primal.shape(primal.arguments()[argument]);
  if (!request.batched.empty() && request.batched[argument]) in.erase(in.begin());
  SparsePattern pattern = sparse_pattern(accumulation.blocks[output * request.wrt.size() + k], out, in);
  return request.batched.empty() ? pattern : folded_over_examples(pattern, out[0]);
}

Program with_entries_only(const Accumulation& accumulation, const AccumulationRequest& request,
                          std::size_t output_count, const std::vector<SparsePattern>& patterns) {
  const std::vector<Value> dense(accumulation.program.outputs().begin(),
                                 accumulation.program.outputs().end());
  std::vector<Value> results(dense.begin(), dense.begin() + static_cast<std::ptrdiff_t>(output_count));
  Builder builder(accumulation.program);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    results.push_back(entries_of(builder, dense[output_count + i], patterns[i], !request.batched.empty()));
  return builder.finish(std::move(results));
}

}  // namespace loipe
