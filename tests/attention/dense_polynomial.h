// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "attention/almost_linear/almost_linear.h"
#include "attention/attention_case.h"
#include "attention/polynomial/polynomial.h"

// Polynomial attention and its gradients by their definitions, pair by pair in f64, with what an audit and a
// bound need.

namespace loipe::attention::testing {

/// Results in arrays of their own.
template <class E>
struct DenseResults {
  Array<E> o, lse, denominator, dq, dk, dv;

  explicit DenseResults(const Shape& s) {
    Rng rng(1);
    o = Array<E>(s.heads, s.queries, s.value_size, rng);
    lse = Array<E>(s.heads, s.queries, 1, rng), denominator = Array<E>(s.heads, s.queries, 1, rng);
    dq = Array<E>(s.heads, s.queries, s.head_size, rng);
    dk = Array<E>(s.kv_heads, s.keys, s.head_size, rng), dv = Array<E>(s.kv_heads, s.keys, s.value_size, rng);
    for (Array<E>* array : {&o, &lse, &denominator, &dq, &dk, &dv}) array->fill([](auto...) { return 0.0; });
  }
};

template <class E>
class DensePolynomial {
 public:
  /// coefficients [degree + 1], the same for all heads; null: exp.
  DensePolynomial(const Case<E>& c, const almost_linear::Approximation* approximation)
      : c_(c), a_(approximation) {}

  DenseResults<E> results() const {
    DenseResults<E> r(c_.shape);
    const Shape& s = c_.shape;
    for (std::int64_t kh = 0; kh < s.kv_heads; ++kh) {
      const std::vector<double> centre = centre_of(kh);
      for (std::int64_t h = kh * s.readers(); h < (kh + 1) * s.readers(); ++h)
        for (std::int64_t i = 0; i < s.queries; ++i) add_row(r, kh, h, i, centre);
    }
    return r;
  }
  std::vector<double> centre_of(std::int64_t kh) const {
    std::vector<double> mean(static_cast<std::size_t>(c_.shape.head_size));
    double count = 0;
    for (std::int64_t j = 0; j < c_.shape.keys; ++j) {
      if (!is_admitted(kh, j)) continue;
      ++count;
      for (std::size_t x = 0; x < mean.size(); ++x) mean[x] += c_.k.at(kh, j, static_cast<std::int64_t>(x));
    }
    for (double& x : mean) x /= std::max(count, 1.0);
    return mean;
  }

 private:
  bool is_admitted(std::int64_t kh, std::int64_t j) const {
    return c_.key_mask.empty() ||
           c_.key_mask[static_cast<std::size_t>(kh * c_.key_mask_head_stride + j)] != 0;
  }
  double basis(std::int64_t kh, std::int64_t x, std::int64_t r) const {
    return a_->basis[(kh * c_.shape.head_size + x) * a_->rank + r];
  }
  /// What stands for a vector: itself, or its projection B B^T x.
  template <class At>
  std::vector<double> projected(std::int64_t kh, At&& at) const {
    const std::int64_t d = c_.shape.head_size;
    std::vector<double> out(static_cast<std::size_t>(d));
    for (std::int64_t x = 0; x < d; ++x) out[static_cast<std::size_t>(x)] = at(x);
    if (a_ == nullptr || a_->rank == 0) return out;
    std::vector<double> coordinates(static_cast<std::size_t>(a_->rank));
    for (std::int64_t r = 0; r < a_->rank; ++r)
      for (std::int64_t x = 0; x < d; ++x)
        coordinates[static_cast<std::size_t>(r)] += basis(kh, x, r) * at(x);
    for (std::int64_t x = 0; x < d; ++x) {
      double sum = 0;
      for (std::int64_t r = 0; r < a_->rank; ++r)
        sum += basis(kh, x, r) * coordinates[static_cast<std::size_t>(r)];
      out[static_cast<std::size_t>(x)] = sum;
    }
    return out;
  }
  /// P(x), and what stands for its derivative.
  std::pair<double, double> weight(std::int64_t i, std::int64_t j, double x) const {
    if (a_ == nullptr || (a_->window > 0 && std::abs(i - j) < a_->window)) return {std::exp(x), std::exp(x)};
    const std::span<const double> p(a_->coefficients, static_cast<std::size_t>(a_->degree) + 1);
    const double value = polynomial::value(p, x);
    if (a_->gradient == almost_linear::Gradient::paper) return {value, value};
    double slope = 0;
    for (int power = a_->degree; power > 0; --power)
      slope = slope * x + power * p[static_cast<std::size_t>(power)];
    return {value, slope};
  }

  void add_row(DenseResults<E>& r, std::int64_t kh, std::int64_t h, std::int64_t i,
               const std::vector<double>& centre) const {
    const Shape& s = c_.shape;
    const auto add = [](Array<E>& to, std::int64_t head, std::int64_t row, std::int64_t x, double value) {
      set(to.rows(), head, row, x, static_cast<E>(to.at(head, row, x) + value));
    };
    const std::vector<double> q = projected(kh, [&](std::int64_t x) { return c_.q.at(h, i, x); });
    std::vector<std::int64_t> keys;
    std::vector<std::vector<double>> centred;
    std::vector<double> value, slope, dp;
    double denominator = 0, mean = 0;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      if (!is_allowed(c_.mask(), kh, i, j)) continue;
      keys.push_back(j);
      centred.push_back(projected(
          kh, [&](std::int64_t x) { return c_.k.at(kh, j, x) - centre[static_cast<std::size_t>(x)]; }));
      double logit = 0, of_g = 0;
      for (std::size_t x = 0; x < q.size(); ++x) logit += q[x] * centred.back()[x];
      for (std::int64_t x = 0; x < s.value_size; ++x) of_g += c_.g.at(h, i, x) * c_.v.at(kh, j, x);
      const auto [w, w_slope] = weight(i, j, c_.scale * logit);
      value.push_back(w), slope.push_back(w_slope), dp.push_back(of_g);
      denominator += w, mean += w * of_g;
    }
    if (keys.empty()) return set(r.lse.rows(), h, i, 0, -std::numeric_limits<E>::infinity());
    const double l = c_.glse.at(h, i, 0);
    mean = mean / denominator - l;
    double of_centre = 0;
    for (std::int64_t x = 0; x < s.head_size; ++x)
      of_centre += c_.q.at(h, i, x) * centre[static_cast<std::size_t>(x)];
    set(r.denominator.rows(), h, i, 0, static_cast<E>(denominator));
    set(r.lse.rows(), h, i, 0, static_cast<E>(std::log(denominator) + c_.scale * of_centre));
    for (std::int64_t x = 0; x < s.head_size; ++x)
      add(r.dq, h, i, x, c_.scale * l * centre[static_cast<std::size_t>(x)]);
    for (std::size_t a = 0; a < keys.size(); ++a) {
      const double p = value[a] / denominator, dx = c_.scale * slope[a] / denominator * (dp[a] - mean);
      for (std::int64_t x = 0; x < s.value_size; ++x) {
        add(r.o, h, i, x, p * c_.v.at(kh, keys[a], x));
        add(r.dv, kh, keys[a], x, p * c_.g.at(h, i, x));
      }
      for (std::int64_t x = 0; x < s.head_size; ++x) {
        add(r.dq, h, i, x, dx * centred[a][static_cast<std::size_t>(x)]);
        add(r.dk, kh, keys[a], x, dx * q[static_cast<std::size_t>(x)]);
      }
    }
  }

  const Case<E>& c_;
  const almost_linear::Approximation* a_;
};

/// |a - b| / |b| of Frobenius norms; |a - b| where b is 0.
template <class A, class B>
double relative_error(const Array<A>& a, const Array<B>& b) {
  double difference = 0, norm = 0;
  for (std::int64_t h = 0; h < b.heads(); ++h)
    for (std::int64_t i = 0; i < b.row_count(); ++i)
      for (std::int64_t c = 0; c < b.columns(); ++c) {
        const double should = b.at(h, i, c), is = a.at(h, i, c);
        difference += (is - should) * (is - should), norm += should * should;
      }
  return std::sqrt(difference) / (norm > 0 ? std::sqrt(norm) : 1);
}

}  // namespace loipe::attention::testing
