// SPDX-License-Identifier: Apache-2.0
#include "support/random_term.h"

#include "jacobian/rules.h"

namespace loipe::testing {

/// One term in the making.
class RandomTerms::Drawing {
 public:
  explicit Drawing(RandomTerms& source) : source_(source), rng_(source.rng_) {}

  LocalJacobian draw(const Shape& out, const Shape& in) {
    for (std::int64_t extent : out) draft_.out_axis(coordinate(extent));
    for (std::int64_t extent : in) draft_.in_axis(coordinate(extent));
    if (rng_.chance(0.1)) new_label(rng_.between(1, 3));  // a label in no axis
    if (rng_.chance(0.75)) {
      const std::vector<Label> axes = some_labels(0.7);
      draft_.value(source_.new_argument(numbers(axes)), axes);
    }
    const double coefficients[] = {1, -1, 0.5, 2};
    draft_.coefficient(coefficients[rng_.below(4)]);
    if (rng_.chance(0.25)) {
      const std::vector<Label> axes = some_labels(0.6);
      Tensor mask(TensorType{DType::boolean, shape_of(axes)});
      for (std::int64_t i = 0; i < mask.element_count(); ++i) mask.set(i, rng_.chance(0.6));
      draft_.mask(source_.new_argument(mask), axes, rng_.chance(0.5) ? MaskKind::soft : MaskKind::hard);
    }
    return draft_.finish(source_.builder_);
  }

 private:
  Label new_label(std::int64_t extent) {
    extents_.push_back(extent);
    return draft_.label(extent);
  }
  Label label_of_extent(std::int64_t extent) {
    for (Label label = 0; label < extents_.size(); ++label)
      if (extents_[label] == extent && rng_.chance(0.5)) return label;
    return new_label(extent);
  }

  Coordinate coordinate(std::int64_t extent) {
    switch (rng_.below(9)) {
      case 0: return Coordinate::fixed(rng_.below(extent));
      case 1: {  // strided window
        const std::int64_t stride = rng_.between(1, 2), offset = rng_.below(extent);
        return Coordinate::of(label_of_extent((extent - 1 - offset) / stride + 1), stride, offset);
      }
      case 2: {  // list
        if (extent % 2 != 0 || extent < 4) return Coordinate::of(label_of_extent(extent));
        Coordinate list = Coordinate::of(label_of_extent(extent / 2), 2);
        add_affine(list, Coordinate::of(label_of_extent(2)), 1);
        return list;  // one label twice gives 3*l, still inside when extent/2 is 2
      }
      case 3: {  // two labels with stride 1
        if (extent < 3) return Coordinate::of(label_of_extent(extent));
        Coordinate sum = Coordinate::of(new_label(extent - 1));
        add_affine(sum, Coordinate::of(new_label(2)), 1);
        return sum;
      }
      case 4: {  // table, static or known only at run time
        const std::vector<Label> axes{label_of_extent(rng_.between(1, 4))};
        const std::int64_t count = extents_[axes[0]];
        std::vector<std::int64_t> positions;
        for (std::int64_t i = 0; i < count; ++i) positions.push_back(rng_.below(extent));
        if (rng_.chance(0.5)) return Coordinate::table(axes, positions);
        Coordinate dynamic;
        dynamic.index = IndexArray{axes, nullptr,
                                   source_.new_argument(Tensor::of<std::int64_t>(
                                       {count}, std::span<const std::int64_t>(positions)))};
        return dynamic;
      }
      default: return Coordinate::of(label_of_extent(extent));
    }
  }

  std::vector<Label> some_labels(double probability) {
    std::vector<Label> axes;
    for (Label label = 0; label < extents_.size(); ++label)
      if (rng_.chance(probability))
        axes.insert(axes.begin() + rng_.between(0, static_cast<std::int64_t>(axes.size())), label);
    return axes;
  }
  Shape shape_of(const std::vector<Label>& axes) const {
    Shape shape;
    for (Label label : axes) shape.push_back(extents_[label]);
    return shape;
  }
  Tensor numbers(const std::vector<Label>& axes) {
    Tensor tensor(TensorType{DType::f64, shape_of(axes)});
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng_.uniform(-1, 1));
    return tensor;
  }

  RandomTerms& source_;
  Rng& rng_;
  TermDraft draft_;
  std::vector<std::int64_t> extents_;
};

Value RandomTerms::new_argument(Tensor tensor) {
  arguments_.push_back(std::move(tensor));
  return builder_.argument("x" + std::to_string(arguments_.size()), arguments_.back().type());
}

LocalJacobian RandomTerms::term(const Shape& out, const Shape& in) { return Drawing(*this).draw(out, in); }

Shape RandomTerms::shape() {
  Shape shape(static_cast<std::size_t>(rng_.between(0, 3)));
  for (std::int64_t& extent : shape) extent = rng_.chance(0.15) ? 1 : rng_.between(2, 6);
  return shape;
}

}  // namespace loipe::testing
