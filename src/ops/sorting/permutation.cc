// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/permutation.h"

#include <numeric>

#include "ops/op_list.h"

namespace loipe::ops {

namespace {

class PermutationJacobian final : public ImplicitJacobian {
 public:
  PermutationJacobian(const JacobianContext& c, Value places)
      : dtype_(c.dtype()), rows_(c.type().shape.size() - 1), places_(places) {}

  DType dtype() const override { return dtype_; }
  std::size_t tied_axes() const override { return rows_; }

  Value jvp(Builder& b, Value tangents) const override {
    const Value operands[] = {tangents, places_};
    return b.emit(op_gather, operands, {{"extents", b.shape(tangents)}, {"from", coordinates()}});
  }

  Value vjp(Builder& b, Value cotangents) const override {
    const Shape shape = b.shape(cotangents);
    Integers axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    const Value operands[] = {cotangents, places_};
    return b.emit(op_scatter, operands,
                  {{"axes", axes}, {"extents", shape}, {"shape", shape}, {"to", coordinates()}});
  }

  std::int64_t multiplications() const override { return 0; }

 private:
  /// Of [K, rows..., n]: the labels but the last, and the place that the index array has for the
  /// row and the last label.
  std::string coordinates() const {
    std::vector<Coordinate> at;
    IndexArray index{{}, nullptr, Value{1}};
    for (Label label = 0; label <= rows_; ++label) at.push_back(Coordinate::of(label));
    for (Label label = 1; label <= rows_ + 1; ++label) index.labels.push_back(label);
    at.emplace_back();
    at.back().index = std::move(index);
    return print_coordinates(at);
  }

  DType dtype_;
  std::size_t rows_;
  Value places_;  ///< [rows..., n]
};

}  // namespace

LocalJacobian permutation_jacobian(const JacobianContext& context, Value places) {
  if (context.type().element_count() == 0) return LocalJacobian::zero();
  return LocalJacobian{{}, std::make_shared<PermutationJacobian>(context, places)};
}

}  // namespace loipe::ops
