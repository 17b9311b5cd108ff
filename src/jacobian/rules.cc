// SPDX-License-Identifier: Apache-2.0
#include "jacobian/rules.h"

#include "base/check.h"
#include "jacobian/raw_term.h"

namespace loipe {

std::vector<Label> TermDraft::labels(const Shape& shape) {
  std::vector<Label> result;
  for (std::int64_t extent : shape) result.push_back(label(extent));
  return result;
}

TermDraft& TermDraft::out(const std::vector<Label>& axes) {
  for (Label axis : axes) term_.out.push_back(Coordinate::of(axis));
  return *this;
}

TermDraft& TermDraft::in(const std::vector<Label>& axes) {
  for (Label axis : axes) term_.in.push_back(Coordinate::of(axis));
  return *this;
}

TermDraft& TermDraft::value(Value value, std::vector<Label> axes) {
  term_.value = LabelledValue{value, std::move(axes)};
  return *this;
}

TermDraft& TermDraft::mask(Value mask, std::vector<Label> axes, MaskKind kind) {
  term_.mask = LabelledValue{mask, std::move(axes), kind};
  return *this;
}

LocalJacobian TermDraft::finish(Builder& builder) const {
  RawTerm raw;
  for (std::int64_t extent : term_.extents) raw.add_label(extent);
  raw.out = term_.out;
  raw.in = term_.in;
  raw.coefficient = term_.coefficient;
  // An axis of extent 1 may be given any label: it is read at 0.
  auto access = [&](const LabelledValue& labelled) {
    const Shape& shape = builder.shape(labelled.value);
    require(shape.size() == labelled.axes.size(), "a value of a local Jacobian has another number of axes");
    Access result{labelled.value, {}, labelled.kind};
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      result.at.push_back(shape[axis] == 1 ? Coordinate::fixed(0) : Coordinate::of(labelled.axes[axis]));
    return result;
  };
  if (term_.value) raw.values.push_back(access(*term_.value));
  if (term_.mask) raw.masks.push_back(access(*term_.mask));
  Recorder recorder(builder, term_.value ? builder.type(term_.value->value).dtype : DType::f64);
  LocalJacobian result;
  if (auto term = std::move(raw).normalised(recorder)) result.terms.push_back(std::move(*term));
  return result;
}

LocalJacobian elementwise_jacobian(JacobianContext& context, const Partial& partial) {
  const Shape out = context.type().shape, in = context.operand_type().shape;
  TermDraft draft;
  const std::vector<Label> labels = draft.labels(out);
  draft.out(labels).coefficient(partial.coefficient);
  for (std::size_t axis = 0; axis < in.size(); ++axis)
    draft.in_axis(in[axis] == 1 ? Coordinate::fixed(0) : Coordinate::of(labels[axis]));
  auto axes_of = [&](Value v) { return context.builder.shape(v).empty() ? std::vector<Label>{} : labels; };
  if (partial.value) draft.value(*partial.value, axes_of(*partial.value));
  if (partial.mask) draft.mask(*partial.mask, axes_of(*partial.mask), partial.kind);
  return draft.finish(context.builder);
}

}  // namespace loipe
