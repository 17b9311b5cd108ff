// SPDX-License-Identifier: Apache-2.0
#include "attention/reference/reference_attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "attention/element.h"

namespace loipe::attention::reference {

namespace {

using Numbers = std::vector<double>;

template <class E>
Numbers row_of(const Rows<E>& rows, std::int64_t head, std::int64_t row, std::int64_t columns) {
  Numbers numbers(static_cast<std::size_t>(columns), 0.0);
  if (rows)
    for (std::int64_t c = 0; c < columns; ++c) numbers[static_cast<std::size_t>(c)] = get(rows, head, row, c);
  return numbers;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

/// to += factor * from
void add(Numbers& to, double factor, const Numbers& from) {
  for (std::size_t c = 0; c < to.size(); ++c) to[c] += factor * from[c];
}

/// A whole result [heads, rows, columns] as it is summed up, written at the end.
template <class E>
class Sum {
 public:
  Sum(const Rows<E>& result, std::int64_t heads, std::int64_t rows, std::int64_t columns)
      : result_(result), heads_(heads), rows_(rows), columns_(columns) {
    if (result)
      numbers_.resize(static_cast<std::size_t>(heads * rows), Numbers(static_cast<std::size_t>(columns)));
  }
  void add(std::int64_t head, std::int64_t row, double factor, const Numbers& from) {
    if (result_) reference::add(numbers_[static_cast<std::size_t>(head * rows_ + row)], factor, from);
  }
  void write() const {
    if (!result_) return;
    for (std::int64_t h = 0; h < heads_; ++h)
      for (std::int64_t i = 0; i < rows_; ++i)
        for (std::int64_t c = 0; c < columns_; ++c)
          set(result_, h, i, c,
              static_cast<Accumulator<E>>(
                  numbers_[static_cast<std::size_t>(h * rows_ + i)][static_cast<std::size_t>(c)]));
  }

 private:
  Rows<E> result_;
  std::int64_t heads_, rows_, columns_;
  std::vector<Numbers> numbers_;
};

/// The softmax of one row: the keys that it may look at, their weights, log sum exp.
struct SoftmaxRow {
  std::vector<std::int64_t> keys;
  Numbers weights;
  double lse;
};

template <class E>
SoftmaxRow softmax_row(const Problem<E>& p, std::int64_t h, std::int64_t i) {
  const std::int64_t kh = p.shape.key_head(h);
  const double infinity = std::numeric_limits<double>::infinity();
  const Numbers q = row_of(p.q, h, i, p.shape.head_size);
  SoftmaxRow row{{}, {}, -infinity};
  double largest = -infinity;
  for (std::int64_t j = 0; j < p.shape.keys; ++j) {
    if (!is_allowed(p.mask, kh, i, j)) continue;
    const double bias = p.mask.bias ? get(p.mask.bias, h, i, j) : 0.0;
    if (bias == -infinity) continue;
    row.keys.push_back(j);
    row.weights.push_back(p.scale * dot(q, row_of(p.k, kh, j, p.shape.head_size)) + bias);
    largest = std::max(largest, row.weights.back());
  }
  double sum = 0;
  for (double& weight : row.weights) sum += weight = std::exp(weight - largest);
  for (double& weight : row.weights) weight /= sum;
  if (!row.keys.empty()) row.lse = largest + std::log(sum);
  return row;
}

/// Tangents of the logits and the weights: x' and p' = p (x' - lse').
struct SoftmaxTangent {
  Numbers logits, weights;
  double lse = 0;
};

template <class E>
SoftmaxTangent softmax_tangent(const Problem<E>& p, const InputTangents<E>& tangents, const SoftmaxRow& row,
                               std::int64_t h, std::int64_t i) {
  const std::int64_t kh = p.shape.key_head(h), d = p.shape.head_size;
  const Numbers q = row_of(p.q, h, i, d), dq = row_of(tangents.q, h, i, d);
  SoftmaxTangent result;
  for (std::size_t a = 0; a < row.keys.size(); ++a) {
    const std::int64_t j = row.keys[a];
    const double bias = tangents.bias ? get(tangents.bias, h, i, j) : 0.0;
    result.logits.push_back(
        p.scale * (dot(dq, row_of(p.k, kh, j, d)) + dot(q, row_of(tangents.k, kh, j, d))) + bias);
    result.lse += row.weights[a] * result.logits.back();
  }
  for (std::size_t a = 0; a < row.keys.size(); ++a)
    result.weights.push_back(row.weights[a] * (result.logits[a] - result.lse));
  return result;
}

/// The results of a VJP or of its tangent, while they are summed up.
template <class E>
struct InputSums {
  Sum<E> q, k, v;
  Rows<Accumulator<E>> bias;

  InputSums(const Shape& s, const InputCotangents<E>& results)
      : q(results.q, s.heads, s.queries, s.head_size),
        k(results.k, s.kv_heads, s.keys, s.head_size),
        v(results.v, s.kv_heads, s.keys, s.value_size),
        bias(results.bias) {
    for (std::int64_t h = 0; bias && h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i)
        for (std::int64_t j = 0; j < s.keys; ++j) set(bias, h, i, j, Accumulator<E>{0});
  }
  void write() const {
    q.write();
    k.write();
    v.write();
  }
};

template <class E>
double lse_cotangent(const Cotangents<E>& cotangents, std::int64_t h, std::int64_t i) {
  return cotangents.lse ? get(cotangents.lse, h, i, 0) : 0.0;
}

}  // namespace

template <class E>
void forward(const Problem<E>& p, const ForwardResults<E>& results) {
  const Shape& s = p.shape;
  Sum<E> o(results.o, s.heads, s.queries, s.value_size);
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const SoftmaxRow row = softmax_row(p, h, i);
      for (std::size_t a = 0; a < row.keys.size(); ++a)
        o.add(h, i, row.weights[a], row_of(p.v, s.key_head(h), row.keys[a], s.value_size));
      if (results.lse) set(results.lse, h, i, 0, static_cast<Accumulator<E>>(row.lse));
    }
  o.write();
}

template <class E>
void vjp(const Problem<E>& p, const Cotangents<E>& cotangents, const InputCotangents<E>& results) {
  const Shape& s = p.shape;
  InputSums<E> sums(s, results);
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const std::int64_t kh = s.key_head(h);
      const SoftmaxRow row = softmax_row(p, h, i);
      const Numbers q = row_of(p.q, h, i, s.head_size), g = row_of(cotangents.o, h, i, s.value_size);
      Numbers dp;
      double mean = -lse_cotangent(cotangents, h, i);
      for (std::size_t a = 0; a < row.keys.size(); ++a) {
        dp.push_back(dot(g, row_of(p.v, kh, row.keys[a], s.value_size)));
        mean += row.weights[a] * dp[a];
      }
      for (std::size_t a = 0; a < row.keys.size(); ++a) {
        const std::int64_t j = row.keys[a];
        const double dx = row.weights[a] * (dp[a] - mean);
        sums.q.add(h, i, p.scale * dx, row_of(p.k, kh, j, s.head_size));
        sums.k.add(kh, j, p.scale * dx, q);
        sums.v.add(kh, j, row.weights[a], g);
        if (results.bias)
          set(results.bias, h, i, j, static_cast<Accumulator<E>>(get(results.bias, h, i, j) + dx));
      }
    }
  sums.write();
}

template <class E>
void jvp(const Problem<E>& p, const InputTangents<E>& tangents, const Tangents<E>& results) {
  const Shape& s = p.shape;
  Sum<E> o(results.o, s.heads, s.queries, s.value_size);
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const std::int64_t kh = s.key_head(h);
      const SoftmaxRow row = softmax_row(p, h, i);
      const SoftmaxTangent tangent = softmax_tangent(p, tangents, row, h, i);
      for (std::size_t a = 0; a < row.keys.size(); ++a) {
        o.add(h, i, tangent.weights[a], row_of(p.v, kh, row.keys[a], s.value_size));
        o.add(h, i, row.weights[a], row_of(tangents.v, kh, row.keys[a], s.value_size));
      }
      if (results.lse) set(results.lse, h, i, 0, static_cast<Accumulator<E>>(tangent.lse));
    }
  o.write();
}

template <class E>
void vjp_jvp(const Problem<E>& p, const Cotangents<E>& cotangents, const InputTangents<E>& tangents,
             const Cotangents<E>& cotangent_tangents, const InputCotangents<E>& results) {
  const Shape& s = p.shape;
  InputSums<E> sums(s, results);
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const std::int64_t kh = s.key_head(h);
      const SoftmaxRow row = softmax_row(p, h, i);
      const SoftmaxTangent tangent = softmax_tangent(p, tangents, row, h, i);
      const Numbers q = row_of(p.q, h, i, s.head_size), g = row_of(cotangents.o, h, i, s.value_size);
      const Numbers tq = row_of(tangents.q, h, i, s.head_size);
      const Numbers tg = row_of(cotangent_tangents.o, h, i, s.value_size);
      // dX = P (dP - D), so dX' = P' (dP - D) + P (dP' - D'); D = sum P dP - dL/dlse.
      Numbers dp, tdp;
      double mean = -lse_cotangent(cotangents, h, i), tmean = -lse_cotangent(cotangent_tangents, h, i);
      for (std::size_t a = 0; a < row.keys.size(); ++a) {
        const Numbers v = row_of(p.v, kh, row.keys[a], s.value_size);
        dp.push_back(dot(g, v));
        tdp.push_back(dot(tg, v) + dot(g, row_of(tangents.v, kh, row.keys[a], s.value_size)));
        mean += row.weights[a] * dp[a];
        tmean += tangent.weights[a] * dp[a] + row.weights[a] * tdp[a];
      }
      for (std::size_t a = 0; a < row.keys.size(); ++a) {
        const std::int64_t j = row.keys[a];
        const double dx = row.weights[a] * (dp[a] - mean);
        const double tdx = tangent.weights[a] * (dp[a] - mean) + row.weights[a] * (tdp[a] - tmean);
        sums.q.add(h, i, p.scale * tdx, row_of(p.k, kh, j, s.head_size));
        sums.q.add(h, i, p.scale * dx, row_of(tangents.k, kh, j, s.head_size));
        sums.k.add(kh, j, p.scale * tdx, q);
        sums.k.add(kh, j, p.scale * dx, tq);
        sums.v.add(kh, j, tangent.weights[a], g);
        sums.v.add(kh, j, row.weights[a], tg);
        if (results.bias)
          set(results.bias, h, i, j, static_cast<Accumulator<E>>(get(results.bias, h, i, j) + tdx));
      }
    }
  sums.write();
}

#define LOIPE_INSTANTIATE(E)                                                              \
  template void forward(const Problem<E>&, const ForwardResults<E>&);                     \
  template void vjp(const Problem<E>&, const Cotangents<E>&, const InputCotangents<E>&);  \
  template void jvp(const Problem<E>&, const InputTangents<E>&, const Tangents<E>&);      \
  template void vjp_jvp(const Problem<E>&, const Cotangents<E>&, const InputTangents<E>&, \
                        const Cotangents<E>&, const InputCotangents<E>&);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
LOIPE_INSTANTIATE(Bf16)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::reference
