// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace loipe::ops {

namespace {

using Matrix = AttentionMatrix;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Entries from `first` on.
Matrix matrix_at(const Tensor& tensor, std::int64_t first, std::int64_t rows, std::int64_t columns) {
  Matrix result(rows, columns);
  for (std::int64_t i = 0; i < rows * columns; ++i)
    result.entries[static_cast<std::size_t>(i)] = tensor.at(first + i);
  return result;
}

/// Entry (i, j) of the head's part of a bias, or of directions in its shape.
Matrix bias_at(const Tensor& tensor, std::int64_t first, const AttentionCall& call, std::int64_t head,
               std::int64_t group) {
  const Shape& s = call.bias_shape;
  Matrix result(call.queries, call.keys);
  for (std::int64_t i = 0; i < call.queries; ++i)
    for (std::int64_t j = 0; j < call.keys; ++j)
      result.at(i, j) =
          tensor.at(first + (((head % s[0]) * s[1] + group % s[1]) * s[2] + i % s[2]) * s[3] + j);
  return result;
}

/// a b, where zero entries of a do not exist: their factors are not looked at.
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t j = 0; a.at(i, k) != 0 && j < b.columns; ++j)
        result.at(i, j) += a.at(i, k) * b.at(k, j);
  return result;
}

Matrix transposed(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
  return result;
}

Matrix scaled(Matrix a, double factor) {
  for (double& entry : a.entries) entry *= factor;
  return a;
}

Matrix sum(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < b.entries.size(); ++i) a.entries[i] += b.entries[i];
  return a;
}

/// a b^T at the entries where the weights are not zero.
void add_scores(Matrix& result, const Matrix& weights, const Matrix& a, const Matrix& b, double scale) {
  if (a.entries.empty() || b.entries.empty()) return;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.rows; ++j) {
      if (weights.at(i, j) == 0) continue;
      double sum = 0;
      for (std::int64_t c = 0; c < a.columns; ++c) sum += a.at(i, c) * b.at(j, c);
      result.at(i, j) += scale * sum;
    }
}

}  // namespace

AttentionHead::AttentionHead(const AttentionCall& call, std::span<const Tensor* const> operands,
                             std::int64_t head, std::int64_t group)
    : call_(call), head_(head), group_(group) {
  const std::int64_t n = call.queries, m = call.keys, d = call.head_size, e = call.value_size;
  q_ = matrix_at(*operands[0], (head * call.groups + group) * n * d, n, d);
  k_ = matrix_at(*operands[1], head * m * d, m, d);
  v_ = matrix_at(*operands[2], head * m * e, m, e);
  const auto sees = [&](std::int64_t i, std::int64_t j) {
    if (!call.allows(i, j)) return false;
    if (!call.mask) return true;
    const Tensor& mask = *operands[*call.mask];
    return mask.at((mask.shape()[0] == 1 ? 0 : head) * m + j) != 0;
  };
  Matrix seen(n, m), logits(n, m);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j) seen.at(i, j) = sees(i, j) ? 1 : 0;
  add_scores(logits, seen, q_, k_, call.scale);
  if (call.bias) logits = sum(std::move(logits), bias_at(*operands[*call.bias], 0, call, head, group));
  weights_ = Matrix(n, m);
  for (std::int64_t i = 0; i < n; ++i) {
    double largest = -kInfinity, total = 0;
    for (std::int64_t j = 0; j < m; ++j)
      if (seen.at(i, j) != 0) largest = std::max(largest, logits.at(i, j));
    for (std::int64_t j = 0; largest > -kInfinity && j < m; ++j)
      if (seen.at(i, j) != 0) total += weights_.at(i, j) = std::exp(logits.at(i, j) - largest);
    for (std::int64_t j = 0; total != 0 && j < m; ++j) weights_.at(i, j) /= total;
    lse_.push_back(largest > -kInfinity ? largest + std::log(total) : -kInfinity);
  }
}

Matrix AttentionHead::with_lse(const Matrix& output, const std::vector<double>& lse) const {
  Matrix result(call_.queries, call_.value_size + 1);
  for (std::int64_t i = 0; i < result.rows; ++i) {
    for (std::int64_t c = 0; c < call_.value_size; ++c) result.at(i, c) = output.at(i, c);
    result.at(i, call_.value_size) = lse[static_cast<std::size_t>(i)];
  }
  return result;
}

Matrix AttentionHead::result() const { return with_lse(product(weights_, v_), lse_); }

AttentionTangents AttentionHead::tangents(std::span<const Tensor* const> directions, std::string_view along,
                                          std::int64_t direction) const {
  AttentionTangents result;
  for (std::size_t k = 0; k < along.size(); ++k) {
    const Tensor& tensor = *directions[k];
    const std::int64_t first = direction * element_count(call_.shape_of(along[k]));
    const std::int64_t n = call_.queries, m = call_.keys, d = call_.head_size, e = call_.value_size;
    if (along[k] == 'q') result.q = matrix_at(tensor, first + (head_ * call_.groups + group_) * n * d, n, d);
    if (along[k] == 'k') result.k = matrix_at(tensor, first + head_ * m * d, m, d);
    if (along[k] == 'v') result.v = matrix_at(tensor, first + head_ * m * e, m, e);
    if (along[k] == 'b') result.bias = bias_at(tensor, first, call_, head_, group_);
  }
  return result;
}

Matrix AttentionHead::cotangents(const Tensor& directions, std::int64_t direction) const {
  const std::int64_t columns = call_.value_size + 1;
  const std::int64_t head = (direction * call_.heads + head_) * call_.groups + group_;
  return matrix_at(directions, head * call_.queries * columns, call_.queries, columns);
}

/// x' = scale (q' k^T + q k'^T) + bias', where weights are not zero.
Matrix AttentionHead::logit_tangents(const AttentionTangents& t) const {
  Matrix result(call_.queries, call_.keys);
  add_scores(result, weights_, t.q, k_, call_.scale);
  add_scores(result, weights_, q_, t.k, call_.scale);
  for (std::size_t i = 0; i < t.bias.entries.size(); ++i)
    if (weights_.entries[i] != 0) result.entries[i] += t.bias.entries[i];
  return result;
}

/// x'' = scale (q'_t k'_s^T + q'_s k'_t^T).
Matrix AttentionHead::second_logit_tangents(const AttentionTangents& t, const AttentionTangents& s) const {
  Matrix result(call_.queries, call_.keys);
  add_scores(result, weights_, t.q, s.k, call_.scale);
  add_scores(result, weights_, s.q, t.k, call_.scale);
  return result;
}

/// x'_ij - sum_j p_ij x'_ij; the sums are lse'.
Matrix AttentionHead::centred_logits(Matrix tangents, std::vector<double>* means) const {
  for (std::int64_t i = 0; i < call_.queries; ++i) {
    double mean = 0;
    for (std::int64_t j = 0; j < call_.keys; ++j) mean += weights_.at(i, j) * tangents.at(i, j);
    for (std::int64_t j = 0; j < call_.keys; ++j) tangents.at(i, j) -= mean;
    if (means != nullptr) means->push_back(mean);
  }
  return tangents;
}

Matrix AttentionHead::weights_times(const Matrix& factor) const {
  Matrix result = weights_;
  for (std::size_t i = 0; i < result.entries.size(); ++i)
    if (result.entries[i] != 0) result.entries[i] *= factor.entries[i];
  return result;
}

/// p' = p (x' - lse'), o' = p' v + p v'.
Matrix AttentionHead::jvp(const AttentionTangents& t) const {
  std::vector<double> lse;
  const Matrix moved = weights_times(centred_logits(logit_tangents(t), &lse));
  Matrix output = product(moved, v_);
  if (!t.v.entries.empty()) output = sum(std::move(output), product(weights_, t.v));
  return with_lse(output, lse);
}

/// With c_t = x'_t - lse'_t: p'' = p (c_s c_t + x'' - lse''), lse'' = sum p (c_s c_t + x''),
/// o'' = p'' v + p'_t v'_s + p'_s v'_t.
Matrix AttentionHead::jvp_jvp(const AttentionTangents& t, const AttentionTangents& s) const {
  const Matrix c_t = centred_logits(logit_tangents(t), nullptr);
  const Matrix c_s = centred_logits(logit_tangents(s), nullptr);
  Matrix curvature = second_logit_tangents(t, s);
  for (std::size_t i = 0; i < curvature.entries.size(); ++i)
    curvature.entries[i] += c_s.entries[i] * c_t.entries[i];
  std::vector<double> lse;
  Matrix output = product(weights_times(centred_logits(std::move(curvature), &lse)), v_);
  if (!s.v.entries.empty()) output = sum(std::move(output), product(weights_times(c_t), s.v));
  if (!t.v.entries.empty()) output = sum(std::move(output), product(weights_times(c_s), t.v));
  return with_lse(output, lse);
}

/// g v^T, where weights are not zero.
Matrix AttentionHead::cotangents_of_weights(const Matrix& cotangents, const Matrix& values) const {
  Matrix result(call_.queries, call_.keys);
  for (std::int64_t i = 0; !values.entries.empty() && i < call_.queries; ++i)
    for (std::int64_t j = 0; j < call_.keys; ++j)
      for (std::int64_t c = 0; weights_.at(i, j) != 0 && c < call_.value_size; ++c)
        result.at(i, j) += cotangents.at(i, c) * values.at(j, c);
  return result;
}

namespace {

/// The cotangents of o without that of lse.
Matrix output_part(const Matrix& cotangents) {
  Matrix result(cotangents.rows, cotangents.columns - 1);
  for (std::int64_t i = 0; i < result.rows; ++i)
    for (std::int64_t c = 0; c < result.columns; ++c) result.at(i, c) = cotangents.at(i, c);
  return result;
}

void add_lse_part(Matrix& weights, const Matrix& cotangents) {
  for (std::int64_t i = 0; i < weights.rows; ++i)
    for (std::int64_t j = 0; j < weights.columns; ++j)
      weights.at(i, j) += cotangents.at(i, cotangents.columns - 1);
}

}  // namespace

/// With c_ij = g_i . v_j - sum_j p_ij g_i . v_j + g_lse,i:  dx = p c, dq = scale dx k,
/// dk = scale dx^T q, dv = p^T g, dbias = dx.
AttentionGradients AttentionHead::vjp(const Matrix& cotangents) const {
  Matrix centred = centred_logits(cotangents_of_weights(cotangents, v_), nullptr);
  add_lse_part(centred, cotangents);
  Matrix dx = weights_times(centred);
  return {scaled(product(dx, k_), call_.scale), scaled(product(transposed(dx), q_), call_.scale),
          product(transposed(weights_), output_part(cotangents)), std::move(dx)};
}

/// With c as for vjp: dx' = p' c + p c', c' = g . v'_j - sum_j (p' g . v + p g . v').
AttentionGradients AttentionHead::vjp_jvp(const Matrix& cotangents, const AttentionTangents& t) const {
  const Matrix values = cotangents_of_weights(cotangents, v_);
  Matrix centred = centred_logits(values, nullptr);
  add_lse_part(centred, cotangents);
  const Matrix dx = weights_times(centred);
  const Matrix moved = centred_logits(logit_tangents(t), nullptr);
  Matrix change = centred_logits(cotangents_of_weights(cotangents, t.v), nullptr);
  for (std::int64_t i = 0; i < call_.queries; ++i) {
    double mean = 0;  // sum_j p'_ij g_i . v_j
    for (std::int64_t j = 0; j < call_.keys; ++j)
      if (weights_.at(i, j) != 0) mean += weights_.at(i, j) * moved.at(i, j) * values.at(i, j);
    for (std::int64_t j = 0; j < call_.keys; ++j)
      if (weights_.at(i, j) != 0) change.at(i, j) += moved.at(i, j) * centred.at(i, j) - mean;
  }
  Matrix ddx = weights_times(change);
  AttentionGradients result;
  result.q = product(ddx, k_);
  result.k = product(transposed(ddx), q_);
  if (!t.k.entries.empty()) result.q = sum(std::move(result.q), product(dx, t.k));
  if (!t.q.entries.empty()) result.k = sum(std::move(result.k), product(transposed(dx), t.q));
  result.q = scaled(std::move(result.q), call_.scale);
  result.k = scaled(std::move(result.k), call_.scale);
  result.v = product(transposed(weights_times(moved)), output_part(cotangents));
  result.bias = std::move(ddx);
  return result;
}

}  // namespace loipe::ops
