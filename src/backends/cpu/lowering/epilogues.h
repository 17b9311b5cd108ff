// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/cpu/steps/map_group.h"
#include "backends/cpu/steps/product_step.h"

namespace loipe::cpu {

class Lowering;

/// One loop of a product, by its extent and the distance of neighbours in the result.
struct ResultLoop {
  std::int64_t extent, stride;
};

/// A product that a step computes into a buffer of its own, row-major.
struct EmittedProduct {
  std::size_t step;  ///< its place in the plan
  ProductPlan plan;
  std::vector<ResultLoop> batch, rows, columns;  ///< outer loops first
  std::vector<StridedView> reads;
};

/// What a loop reads together with those that run beside it over the same space.
struct LoopReads {
  std::span<const BufferId> consumed;  ///< one entry per use of a value
  std::span<const StridedView> views;
};

/// Lets loops over what a product computes run inside it (steps/product_epilogue.h). A product is emitted
/// as a step of its own; a loop that turns out to be its only reader takes its place, and
/// the step is dropped.
class Epilogues {
 public:
  explicit Epilogues(Lowering& lowering) : lowering_(lowering) {}

  void remember(BufferId result, EmittedProduct product) {
    products_.insert_or_assign(result, std::move(product));
  }

  /// Emits the group as the epilogue of a product. False, and nothing happens, where none suits.
  bool emit(const MapGroup& group, const LoopReads& all);

 private:
  const EmittedProduct* product_for(const MapGroup& group, const StridedView& view,
                                    const LoopReads& all) const;
  bool emit_inside(const EmittedProduct& product, const MapGroup& group, std::size_t results);

  Lowering& lowering_;
  std::unordered_map<BufferId, EmittedProduct> products_;  ///< by result
};

}  // namespace loipe::cpu
