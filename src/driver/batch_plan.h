// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/subject.h"

namespace loipe {

/// How the examples of a batch become runs of a program, and how the tensors of the
/// caller relate to those of the program.
struct BatchPlan {
  enum class Kind : std::uint8_t {
    single,   ///< one example, no batch axis anywhere
    squeeze,  ///< one example of a program that has a batch axis: the caller's tensors lack it
    axis,     ///< the program's own batch axis is the caller's
    loop,     ///< one run for each example
  };
  Kind kind = Kind::single;
  std::int64_t examples = 1;
  std::vector<bool> batched;  ///< per argument: it has, or lacks, the axis

  bool is_batched(std::size_t argument) const { return !batched.empty() && batched[argument]; }
  bool has_caller_axis() const { return kind == Kind::axis || kind == Kind::loop; }
  /// The `batched` of the AccumulationRequest.
  std::vector<bool> program_axis() const;

  /// The caller's type of an argument, and of an output or block, from the program's.
  TensorType argument_type(std::size_t argument, const TensorType& in_program) const;
  std::vector<TensorType> argument_types(const Program& program) const;
  TensorType result_type(const TensorType& in_program) const;
};

/// The plan for a subject. `requested` are the arguments of --batched, `stored` those
/// of the input file's metadata (empty: all). UserError for names that are no
/// arguments, for a list without a batch, and for a program whose batched arguments
/// are fixed to others.
BatchPlan plan_batch(const Subject& subject, const std::optional<std::vector<std::string>>& requested,
                     const std::vector<std::string>& stored = {});

}  // namespace loipe
