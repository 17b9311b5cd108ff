// SPDX-License-Identifier: Apache-2.0
#include "driver/sparse_blocks.h"

#include "jacobian/entries.h"

namespace loipe {

namespace {

BlockShape block_shape(const Program& primal, const AccumulationRequest& request, std::size_t output,
                       std::size_t k) {
  const std::size_t argument = request.wrt[k];
  BlockShape shape{primal.shape(primal.outputs()[output]), primal.shape(primal.arguments()[argument]),
                   !request.batched.empty()};
  if (!request.batched.empty() && request.batched[argument]) shape.in.erase(shape.in.begin());
  return shape;
}

}  // namespace

SparsePattern block_pattern(const Program& primal, const AccumulationRequest& request,
                            const Accumulation& accumulation, std::size_t output, std::size_t k) {
  const KnownZeros zeros(accumulation.program);
  return sparse_pattern(accumulation.blocks[output * request.wrt.size() + k],
                        block_shape(primal, request, output, k), &zeros);
}

std::vector<SparsePattern> block_patterns(const Program& primal, const AccumulationRequest& request,
                                          const Accumulation& accumulation) {
  const KnownZeros zeros(accumulation.program);
  std::vector<SparsePattern> patterns;
  for (std::size_t i = 0; i < primal.outputs().size(); ++i)
    for (std::size_t k = 0; k < request.wrt.size(); ++k)
      patterns.push_back(
          sparse_pattern(accumulation.blocks[patterns.size()], block_shape(primal, request, i, k), &zeros));
  return patterns;
}

namespace {

/// What the program returns before its blocks.
std::vector<Value> values_of(const Program& primal, const AccumulationRequest& request,
                             const Accumulation& accumulation) {
  const std::size_t count = request.returned ? request.returned->size() : primal.outputs().size();
  const auto outputs = accumulation.program.outputs().first(count);
  return {outputs.begin(), outputs.end()};
}

}  // namespace

Program with_entries(const Program& primal, const AccumulationRequest& request,
                     const Accumulation& accumulation, const std::vector<SparsePattern>& patterns) {
  Builder builder(accumulation.program);
  std::vector<Value> results = values_of(primal, request, accumulation);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::size_t output = i / request.wrt.size(), k = i % request.wrt.size();
    const DType dtype = primal.type(primal.outputs()[output]).dtype;
    Recorder recorder(builder, dtype);
    results.push_back(entries(recorder, accumulation.blocks[i], block_shape(primal, request, output, k),
                              patterns[i], dtype));
  }
  return builder.finish(std::move(results));
}

ProgramOfTerms with_terms(const Program& primal, const AccumulationRequest& request,
                          const Accumulation& accumulation) {
  Builder builder(accumulation.program);
  std::vector<Value> results = values_of(primal, request, accumulation);
  ProgramOfTerms all;
  for (std::size_t i = 0; i < accumulation.blocks.size(); ++i) {
    const std::size_t output = i / request.wrt.size(), k = i % request.wrt.size();
    const DType dtype = primal.type(primal.outputs()[output]).dtype;
    Recorder recorder(builder, dtype);
    const BlockShape shape = block_shape(primal, request, output, k);
    StructuredValues values = structured(recorder, accumulation.blocks[i], shape.out, shape.in, dtype);
    results.insert(results.end(), values.tensors.begin(), values.tensors.end());
    all.blocks.push_back(std::move(values.block));
  }
  all.program = builder.finish(std::move(results));
  return all;
}

}  // namespace loipe
