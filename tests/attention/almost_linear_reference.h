// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "attention/almost_linear/almost_linear.h"
#include "attention/element.h"

// Almost-linear attention as its definition reads: every pair, in double, in time n^2.

namespace loipe::attention::almost_linear::reference {

using Matrix = std::vector<std::vector<double>>;

template <class E>
class Dense {
 public:
  Dense(const Problem<E>& problem, const Approximation& approximation) : p_(problem), a_(approximation) {}

  void forward(const ForwardResults<E>& results) const {
    for (std::int64_t h = 0; h < p_.shape.kv_heads && results.guarded_rows != nullptr; ++h)
      results.guarded_rows[h] = 0;
    for (std::int64_t h = 0; h < p_.shape.heads; ++h) {
      const Head head = load(h);
      for (std::int64_t i = 0; i < p_.shape.queries; ++i) {
        const Row row = row_of(head, i);
        if (row.is_guarded && results.guarded_rows != nullptr) ++results.guarded_rows[head.key_head];
        for (std::int64_t c = 0; results.o && c < p_.shape.value_size; ++c)
          set(results.o, h, i, c, static_cast<E>(row.o[index(c)]));
        const double lse = row.has_keys ? std::log(row.denominator) + shift(head, i)
                                        : -std::numeric_limits<double>::infinity();
        if (results.lse) set(results.lse, h, i, 0, static_cast<E>(lse));
        if (results.denominator) set(results.denominator, h, i, 0, static_cast<E>(row.denominator));
      }
    }
  }

  void vjp(const Cotangents<E>& cotangents, const InputCotangents<E>& results) const {
    const Shape& s = p_.shape;
    for (std::int64_t key_head = 0; key_head < s.kv_heads; ++key_head) {
      Matrix dk = zeros(s.keys, s.head_size), dv = zeros(s.keys, s.value_size);
      std::vector<double> of_centre(index(s.head_size));
      for (std::int64_t h = key_head * s.readers(); h < (key_head + 1) * s.readers(); ++h)
        vjp_of_head(load(h), cotangents, results.q, dk, dv, of_centre);
      add_centre(key_head, of_centre, dk);
      for (std::int64_t j = 0; j < s.keys; ++j) {
        for (std::int64_t c = 0; results.k && c < s.head_size; ++c)
          set(results.k, key_head, j, c, static_cast<E>(dk[index(j)][index(c)]));
        for (std::int64_t c = 0; results.v && c < s.value_size; ++c)
          set(results.v, key_head, j, c, static_cast<E>(dv[index(j)][index(c)]));
      }
    }
  }

 private:
  /// Queries and centred keys, projected if they are to be.
  struct Head {
    std::int64_t head, key_head;
    std::vector<double> centre;
    Matrix q, k, v;
  };
  struct Row {
    bool has_keys, is_guarded;
    double denominator;
    std::vector<double> o;
  };

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static Matrix zeros(std::int64_t rows, std::int64_t columns) {
    return Matrix(index(rows), std::vector<double>(index(columns)));
  }
  bool is_admitted(std::int64_t key_head, std::int64_t j) const {
    return is_allowed(p_.mask, key_head, std::numeric_limits<std::int64_t>::max(), j);
  }
  std::int64_t coordinates() const { return a_.basis != nullptr ? a_.rank : p_.shape.head_size; }
  double basis(std::int64_t key_head, std::int64_t c, std::int64_t r) const {
    if (a_.basis == nullptr) return c == r ? 1 : 0;
    return a_.basis[(key_head * p_.shape.head_size + c) * a_.rank + r];
  }

  Head load(std::int64_t h) const {
    const Shape& s = p_.shape;
    Head head{h,
              s.key_head(h),
              std::vector<double>(index(s.head_size)),
              zeros(s.queries, coordinates()),
              zeros(s.keys, coordinates()),
              zeros(s.keys, s.value_size)};
    double count = 0;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      if (!is_admitted(head.key_head, j)) continue;
      ++count;
      for (std::int64_t c = 0; c < s.head_size; ++c)
        head.centre[index(c)] += static_cast<double>(get(p_.k, head.key_head, j, c));
    }
    for (double& c : head.centre) c = a_.is_centred && count > 0 ? c / count : 0;
    for (std::int64_t r = 0; r < coordinates(); ++r)
      for (std::int64_t c = 0; c < s.head_size; ++c) {
        const double b = basis(head.key_head, c, r);
        for (std::int64_t i = 0; i < s.queries; ++i)
          head.q[index(i)][index(r)] += static_cast<double>(get(p_.q, h, i, c)) * b;
        for (std::int64_t j = 0; j < s.keys; ++j)
          if (is_admitted(head.key_head, j))
            head.k[index(j)][index(r)] +=
                (static_cast<double>(get(p_.k, head.key_head, j, c)) - head.centre[index(c)]) * b;
      }
    for (std::int64_t j = 0; j < s.keys; ++j)
      for (std::int64_t c = 0; is_admitted(head.key_head, j) && c < s.value_size; ++c)
        head.v[index(j)][index(c)] = static_cast<double>(get(p_.v, head.key_head, j, c));
    return head;
  }
  double shift(const Head& head, std::int64_t i) const {
    double sum = 0;
    for (std::int64_t c = 0; c < p_.shape.head_size; ++c)
      sum += static_cast<double>(get(p_.q, head.head, i, c)) * head.centre[index(c)];
    return p_.scale * sum;
  }

  double logit(const Head& head, std::int64_t i, std::int64_t j) const {
    double x = 0;
    for (std::int64_t r = 0; r < coordinates(); ++r)
      x += head.q[index(i)][index(r)] * head.k[index(j)][index(r)];
    return p_.scale * x;
  }
  bool is_near(std::int64_t i, std::int64_t j) const { return std::abs(i - j) < a_.window; }
  double weight(const Head& head, std::int64_t i, std::int64_t j, double x) const {
    if (is_near(i, j)) return std::exp(x);
    double p = 0;
    for (int n = a_.degree; n >= 0; --n) p = p * x + a_.coefficients[head.key_head * (a_.degree + 1) + n];
    return p;
  }
  double weight_derivative(const Head& head, std::int64_t i, std::int64_t j, double x) const {
    if (is_near(i, j) || a_.gradient == Gradient::paper) return weight(head, i, j, x);
    double p = 0;
    for (int n = a_.degree; n >= 1; --n) p = p * x + n * a_.coefficients[head.key_head * (a_.degree + 1) + n];
    return p;
  }

  Row row_of(const Head& head, std::int64_t i) const {
    Row row{false, false, 0, std::vector<double>(index(p_.shape.value_size))};
    for (std::int64_t j = 0; j < p_.shape.keys; ++j) {
      if (!is_allowed(p_.mask, head.key_head, i, j)) continue;
      row.has_keys = true;
      const double w = weight(head, i, j, logit(head, i, j));
      row.denominator += w;
      for (std::int64_t c = 0; c < p_.shape.value_size; ++c)
        row.o[index(c)] += w * head.v[index(j)][index(c)];
    }
    const auto guard = static_cast<double>(std::numeric_limits<E>::min());
    row.is_guarded = row.has_keys && row.denominator <= guard;
    if (row.is_guarded) row.denominator = guard;
    for (double& c : row.o) c = row.has_keys ? c / row.denominator : 0;
    return row;
  }

  void vjp_of_head(const Head& head, const Cotangents<E>& cotangents, const Rows<E>& dq, Matrix& dk,
                   Matrix& dv, std::vector<double>& of_centre) const {
    const Shape& s = p_.shape;
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const Row row = row_of(head, i);
      std::vector<double> g(index(s.value_size)), sum(index(s.head_size));
      double mean = 0;
      for (std::int64_t c = 0; c < s.value_size; ++c) {
        g[index(c)] = cotangents.o ? static_cast<double>(get(cotangents.o, head.head, i, c)) : 0;
        mean += g[index(c)] * row.o[index(c)];
      }
      const double l =
          row.has_keys && cotangents.lse ? static_cast<double>(get(cotangents.lse, head.head, i, 0)) : 0;
      const double of_denominator = row.is_guarded ? 0 : l - mean;
      for (std::int64_t j = 0; j < s.keys; ++j) {
        if (!is_allowed(p_.mask, head.key_head, i, j)) continue;
        const double x = logit(head, i, j);
        double of_weight = of_denominator / row.denominator;
        for (std::int64_t c = 0; c < s.value_size; ++c) {
          of_weight += g[index(c)] * head.v[index(j)][index(c)] / row.denominator;
          dv[index(j)][index(c)] += weight(head, i, j, x) * g[index(c)] / row.denominator;
        }
        const double dx = p_.scale * weight_derivative(head, i, j, x) * of_weight;
        for (std::int64_t c = 0; c < s.head_size; ++c)
          for (std::int64_t r = 0; r < coordinates(); ++r) {
            const double b = basis(head.key_head, c, r);
            sum[index(c)] += dx * b * head.k[index(j)][index(r)];
            dk[index(j)][index(c)] += dx * b * head.q[index(i)][index(r)];
          }
      }
      for (std::int64_t c = 0; c < s.head_size; ++c) {
        of_centre[index(c)] += l * p_.scale * static_cast<double>(get(p_.q, head.head, i, c));
        if (dq)
          set(dq, head.head, i, c, static_cast<E>(sum[index(c)] + l * p_.scale * head.centre[index(c)]));
      }
    }
  }

  /// The centre is a mean of keys: derivatives by it are shared among them. In the paper's formulas they
  /// cancel (docs/theory/almost_linear.md).
  void add_centre(std::int64_t key_head, std::vector<double>& of_centre, Matrix& dk) const {
    if (!a_.is_centred || a_.gradient == Gradient::paper) return;
    double count = 0;
    for (std::int64_t j = 0; j < p_.shape.keys; ++j) {
      if (!is_admitted(key_head, j)) continue;
      ++count;
      for (std::int64_t c = 0; c < p_.shape.head_size; ++c) of_centre[index(c)] -= dk[index(j)][index(c)];
    }
    for (std::int64_t j = 0; j < p_.shape.keys; ++j)
      for (std::int64_t c = 0; is_admitted(key_head, j) && c < p_.shape.head_size; ++c)
        dk[index(j)][index(c)] += of_centre[index(c)] / count;
  }

  const Problem<E>& p_;
  const Approximation& a_;
};

}  // namespace loipe::attention::almost_linear::reference
