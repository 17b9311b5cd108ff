// SPDX-License-Identifier: Apache-2.0
#include "driver/counted_cost.h"

#include <algorithm>
#include <cmath>

namespace loipe {

namespace {

/// About half a microsecond each: recording and optimising a node of single numbers or of arrays,
/// whose labels take their time.
constexpr std::uint64_t kRecordNumber = 1, kRecordArray = 10, kOptimiseNumber = 2, kOptimiseArray = 20;

std::uint64_t work_of(const Program& program, std::uint64_t of_number, std::uint64_t of_array) {
  std::uint64_t work = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i)
    work += program.type(Value{i}).element_count() == 1 ? of_number : of_array;
  return work;
}

/// What is executed beyond the optimised function, as in executed_beyond.
std::int64_t operations_beyond(const OpCost& executed, const OpCost& function) {
  const auto rest = [](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(a - b, 0); };
  return rest(executed.multiplications, function.multiplications) +
         rest(executed.divisions, function.divisions) + rest(executed.additions, function.additions);
}

}  // namespace

CountedCost::CountedCost(const Subject& subject, const Program& program, Objective objective,
                         const TimeConstants& constants)
    : program_(program),
      objective_(objective),
      constants_(constants),
      request_{floating_arguments(program), {}, batch_axis_arguments(subject)} {
  request_.writes_blocks = objective != Objective::actual;
  if (objective == Objective::folded) function_ = count_operations(run_passes(program));
}

Counted CountedCost::of(const EliminationOrder& order) const {
  AccumulationRequest request = request_;
  request.order = order;
  const Accumulation accumulation = accumulate(program_, request);
  std::uint64_t work = work_of(accumulation.program, kRecordNumber, kRecordArray);
  if (objective_ == Objective::actual) return {accumulation.cost.multiplications, work};
  const Program optimised = run_passes(accumulation.program);
  work += work_of(accumulation.program, kOptimiseNumber, kOptimiseArray);
  if (objective_ == Objective::folded)
    return {operations_beyond(count_operations(optimised), function_), work};
  return {std::llround(1e12 * predicted_seconds(optimised, constants_)), work};
}

}  // namespace loipe
