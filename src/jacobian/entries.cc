// SPDX-License-Identifier: Apache-2.0
#include "jacobian/entries.h"

#include <algorithm>
#include <numeric>

#include "jacobian/arithmetic.h"
#include "jacobian/raw_term.h"

namespace loipe {

namespace {

/// Positions to numbers of entries, -1 for known zeros, which the pattern has not.
/// Positions mostly come in the pattern's order, so the next entry is tried first.
class EntryNumbers {
 public:
  explicit EntryNumbers(const SparsePattern& pattern) {
    positions_.reserve(pattern.rows.size());
    for (std::size_t i = 0; i < pattern.rows.size(); ++i)
      positions_.push_back(pattern.rows[i] * pattern.column_count + pattern.columns[i]);
  }

  void number(std::vector<std::int64_t>& positions) const {
    std::size_t next = 0;
    for (std::int64_t& position : positions) {
      if (next >= positions_.size() || positions_[next] != position)
        next = static_cast<std::size_t>(std::ranges::lower_bound(positions_, position) - positions_.begin());
      const bool is_entry = next < positions_.size() && positions_[next] == position;
      position = is_entry ? static_cast<std::int64_t>(next++) : -1;
    }
  }

 private:
  std::vector<std::int64_t> positions_;
};

/// Where the term's entries lie in the list of all entries. With run-time coordinates the
/// number is looked up at run time, 0 standing for "outside", so that what lies outside
/// becomes the entry -1, which is dropped.
Coordinate entry_coordinate(Recorder& recorder, const Term& term, const KnownPositions& known,
                            std::vector<std::int64_t> numbers) {
  if (known.dynamic().empty())
    return simplified(Coordinate::table(known.labels(), std::move(numbers)), term.extents);
  for (std::int64_t& number : numbers) ++number;
  Shape shape;
  std::vector<Coordinate> at;
  std::vector<Label> labels;
  const std::size_t static_labels = known.labels().size() - known.dynamic().size();
  for (std::size_t i = 0; i < known.labels().size(); ++i) {
    const Label label = known.labels()[i];
    shape.push_back(known.extents()[label]);
    if (i < static_labels) at.push_back(Coordinate::of(label));
    else at.push_back(known.dynamic()[i - static_labels]);
    for_each_label(at.back(), [&](Label used) { labels.push_back(used); });
  }
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  Builder& builder = recorder.builder();
  const Value table = builder.constant(Tensor::of<std::int64_t>(shape, std::span(numbers)));
  const Value found = recorder.gather(table, at, labels, term.extents);
  const Value one = builder.constant(Tensor::of<std::int64_t>({}, {1}));
  Coordinate coordinate;
  coordinate.index = IndexArray{labels, nullptr, recorder.subtract(found, one)};
  return coordinate;
}

/// The term with one axis, its entries' numbers, in place of all axes within an example.
std::optional<Term> over_entries(Recorder& recorder, const Term& term, const Coordinate& entry,
                                 bool has_examples) {
  RawTerm raw;
  for (std::int64_t extent : term.extents) raw.add_label(extent);
  if (has_examples) raw.out.push_back(term.out[0]);
  raw.out.push_back(entry);
  raw.coefficient = term.coefficient;
  for (const auto* labelled : {&term.value, &term.mask}) {
    if (!*labelled) continue;
    (labelled == &term.value ? raw.values : raw.masks).push_back(access_of(**labelled));
  }
  return std::move(raw).normalised(recorder);
}

bool is_counting(const std::vector<std::int64_t>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

/// The entries of a term that lists all of them in order: its value, spread over labels
/// that it lacks.
Value listed(Recorder& recorder, const Term& masked, const Shape& shape, DType dtype) {
  const Term term = without_mask(recorder, masked);
  std::vector<Label> labels(term.extents.size());
  std::iota(labels.begin(), labels.end(), Label{0});
  if (!term.value) return recorder.full(term.coefficient, shape, dtype);
  Value value = recorder.convert(term.value->value, dtype);
  if (term.coefficient < 0) value = recorder.negate(value);
  value = recorder.aligned({value, term.value->axes}, labels);
  if (recorder.type(value).shape != term.extents) {
    Integers axes(labels.size());
    std::iota(axes.begin(), axes.end(), 0);
    value = recorder.broadcast(value, term.extents, axes);
  }
  return recorder.reshape(value, shape);
}

/// The axis of examples, if any, is a label of its own: entries do not depend on it.
bool lists_examples_first(const Term& term, const BlockShape& shape, const KnownPositions& known) {
  if (!shape.has_examples) return known.labels().size() == term.extents.size();
  return (shape.out[0] == 1 || is_bare(term.out[0], shape.out[0], term.extents)) &&
         known.labels().size() + (shape.out[0] == 1 ? 0 : 1) == term.extents.size();
}

}  // namespace

Value entries(Recorder& recorder, const LocalJacobian& block, const BlockShape& shape,
              const SparsePattern& pattern, DType dtype) {
  const LocalJacobian terms = explicit_terms(recorder, block, shape.out, shape.in, dtype);
  Shape result_shape{pattern.entry_count()};
  if (shape.has_examples) result_shape.insert(result_shape.begin(), shape.out[0]);
  const EntryNumbers entry_numbers(pattern);
  LocalJacobian numbered;
  for (const Term& term : terms.terms) {
    const KnownPositions known(term, shape);
    std::vector<std::int64_t> numbers = known.positions();
    entry_numbers.number(numbers);
    if (terms.terms.size() == 1 && known.dynamic().empty() && is_counting(numbers) &&
        lists_examples_first(term, shape, known))
      return listed(recorder, term, result_shape, dtype);
    const Coordinate entry = entry_coordinate(recorder, term, known, std::move(numbers));
    if (auto flat = over_entries(recorder, term, entry, shape.has_examples))
      numbered.terms.push_back(std::move(*flat));
  }
  return materialize(recorder, numbered, result_shape, {}, dtype);
}

}  // namespace loipe
