// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loipe {

/// Where along one axis the entries of a term lie, as a function of the term's labels:
/// offset + sum of stride * label, or looked up in a table over some labels.
struct StructuredAxis {
  struct Stride {
    std::size_t label;
    std::int64_t stride;
    bool operator==(const Stride&) const = default;
  };
  std::int64_t offset = 0;
  std::vector<Stride> strides = {};
  /// With a table: the labels of its axes. Then offset and strides are empty.
  std::vector<std::size_t> table_labels = {};
  /// A table that is known, row-major over `table_labels`.
  std::vector<std::int64_t> table = {};
  /// A table that runs compute: which of the block's tensors it is; -1 otherwise. Entries
  /// whose position is outside the axis do not exist.
  std::ptrdiff_t table_tensor = -1;

  bool operator==(const StructuredAxis&) const = default;
};

/// One term: sum over all values of the labels of
///   coefficient * value[labels] * e[out positions] (x) e[in positions].
/// Labels that stand in several axes tie them: a diagonal, a Kronecker product, a batch.
struct StructuredTerm {
  std::vector<std::int64_t> extents;  ///< per label
  std::vector<StructuredAxis> out, in;
  double coefficient = 1;
  /// Which of the block's tensors holds the values; -1: they are all 1.
  std::ptrdiff_t value_tensor = -1;
  std::vector<std::size_t> value_labels = {};  ///< of the tensor's axes

  bool operator==(const StructuredTerm&) const = default;
};

/// A Jacobian block as the sum of a few terms, the form in which Loipe keeps it: what
/// depends on the inputs are some tensors, far smaller than the block (a diagonal of n
/// numbers stores n, a Kronecker product A (x) I stores A). It belongs to the compiled
/// function; runs give the tensors.
struct StructuredBlock {
  Shape out, in;
  DType dtype = DType::f64;
  std::vector<StructuredTerm> terms;
  std::vector<TensorType> tensor_types;

  /// Numbers that the values of all terms take; 1 for a term that is constant.
  std::int64_t stored_elements() const;
};

/// The dense block, out + in. Sums are formed in f64; results have the block's dtype. UserError
/// where tensors or vector are not of the types that the block names.
Tensor densify(const StructuredBlock& block, std::span<const Tensor> tensors);
/// J v for a v of shape `in`, and u J for a u of shape `out`; nothing dense is formed.
Tensor multiply(const StructuredBlock& block, std::span<const Tensor> tensors, const Tensor& v);
Tensor multiply_transposed(const StructuredBlock& block, std::span<const Tensor> tensors, const Tensor& u);

/// "(a, b | a, c) a<8, b<3, c<4 : -#0[a,b,c]": axes of out, axes of in, extents, and the
/// tensor of the values with its labels; #k[a,b] as an axis is a table, [..][a] a known one.
std::string to_string(const StructuredTerm& term);
/// "[8,3] by [8,4]: " and the terms with " + " in between, or "zero".
std::string to_string(const StructuredBlock& block);

}  // namespace loipe
