// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/rng.h"
#include "ir/builder.h"
#include "jacobian/local_jacobian.h"

namespace loipe::testing {

/// Random local Jacobians with one program for their values: every kind of
/// coordinate, labels tied over any axes of both sides, hard and soft masks.
class RandomTerms {
 public:
  explicit RandomTerms(std::uint64_t seed) : rng_(seed), builder_("terms_" + std::to_string(seed)) {}

  /// One term in normal form, or none where it is empty.
  LocalJacobian term(const Shape& out, const Shape& in);
  Shape shape();

  Rng& rng() { return rng_; }
  Builder& builder() { return builder_; }
  /// The arguments that the values read, in the program's order.
  const std::vector<Tensor>& arguments() const { return arguments_; }

 private:
  class Drawing;
  Value new_argument(Tensor tensor);

  Rng rng_;
  Builder builder_;
  std::vector<Tensor> arguments_;
};

}  // namespace loipe::testing
