// SPDX-License-Identifier: Apache-2.0
#include "jacobian/structured.h"

#include "base/check.h"
#include "jacobian/arithmetic.h"

namespace loipe {

namespace {

class Publisher {
 public:
  Publisher(Recorder& recorder, StructuredValues& result) : recorder_(recorder), result_(result) {}

  void add(const Term& term, DType dtype) {
    StructuredTerm published{term.extents, axes(term.out), axes(term.in), term.coefficient};
    if (term.value) {
      published.value_tensor = tensor(recorder_.convert(term.value->value, dtype));
      published.value_labels.assign(term.value->axes.begin(), term.value->axes.end());
    }
    result_.block.terms.push_back(std::move(published));
  }

 private:
  std::ptrdiff_t tensor(Value value) {
    result_.tensors.push_back(value);
    result_.block.tensor_types.push_back(recorder_.type(value));
    return static_cast<std::ptrdiff_t>(result_.tensors.size()) - 1;
  }

  std::vector<StructuredAxis> axes(const std::vector<Coordinate>& coordinates) {
    std::vector<StructuredAxis> result;
    for (const Coordinate& coordinate : coordinates) {
      StructuredAxis axis{coordinate.offset};
      for (const Stride& s : coordinate.strides) axis.strides.push_back({s.label, s.stride});
      if (const auto& index = coordinate.index) {
        axis.table_labels.assign(index->labels.begin(), index->labels.end());
        if (index->is_dynamic()) axis.table_tensor = tensor(index->value);
        else axis.table = *index->numbers;
      }
      result.push_back(std::move(axis));
    }
    return result;
  }

  Recorder& recorder_;
  StructuredValues& result_;
};

}  // namespace

StructuredValues structured(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out,
                            const Shape& in, DType dtype) {
  StructuredValues result;
  result.block.out = out;
  result.block.in = in;
  result.block.dtype = dtype;
  Publisher publisher(recorder, result);
  for (const Term& term : explicit_terms(recorder, jacobian, out, in, dtype).terms)
    publisher.add(without_mask(recorder, term), dtype);
  return result;
}

}  // namespace loipe
