// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/exact/attention.h"
#include "attention/problem.h"

// Some heads of keys of an attention, with the heads of queries that read them, as an attention of their own.

namespace loipe::attention::approximate {

struct HeadRange {
  std::int64_t first, count;  ///< heads of keys
};

template <class E>
Rows<E> from_head(Rows<E> rows, std::int64_t head) {
  if (rows) rows.data += head * rows.head_stride;
  return rows;
}

template <class E>
Problem<E> some_heads(const Problem<E>& problem, HeadRange range) {
  Problem<E> part = problem;
  const std::int64_t readers = problem.shape.readers(), first = range.first * readers;
  part.shape.kv_heads = range.count;
  part.shape.heads = range.count * readers;
  part.q = from_head(problem.q, first);
  part.k = from_head(problem.k, range.first);
  part.v = from_head(problem.v, range.first);
  part.mask.bias = from_head(problem.mask.bias, first);
  if (part.mask.key_mask != nullptr) part.mask.key_mask += range.first * problem.mask.key_mask_head_stride;
  return part;
}

template <class E>
Cotangents<E> some_heads(const Cotangents<E>& cotangents, const Shape& shape, HeadRange range) {
  const std::int64_t first = range.first * shape.readers();
  return {from_head(cotangents.o, first), from_head(cotangents.lse, first)};
}

template <class E>
InputCotangents<E> some_heads(const InputCotangents<E>& results, const Shape& shape, HeadRange range) {
  return {from_head(results.q, range.first * shape.readers()),
          from_head(results.k, range.first),
          from_head(results.v, range.first),
          {}};
}

/// The first column of rows, as rows of one column.
template <class E>
Rows<E> column(Rows<E> rows, std::int64_t column) {
  rows.data += column * rows.column_stride;
  return rows;
}

}  // namespace loipe::attention::approximate
