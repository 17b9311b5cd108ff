// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <memory>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// Elements that are zero whatever the arguments: those of constants, and what products,
/// sums and moves make of them. So a constant matrix with zeros in it leaves no entries
/// where they are in the pattern of a Jacobian.
class KnownZeros {
 public:
  /// Looks at all nodes of the program, which is not kept.
  explicit KnownZeros(const Program& program);

  /// 1 where an element can differ from zero, 0 where it cannot, f64; null when all can.
  const Tensor* support(Value v) const {
    return v.index < supports_.size() ? supports_[v.index].get() : nullptr;
  }

 private:
  std::vector<std::shared_ptr<const Tensor>> supports_;
};

}  // namespace loipe
