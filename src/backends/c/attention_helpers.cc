// SPDX-License-Identifier: Apache-2.0
// Attention and its derivatives, one query at a time: no more than rows of one number per key exist, and
// rows are in float64. Formulas and signs as in ops/attention/attention_reference.cc. With p the weights of
// the row, x its logits, c = x' - sum p x' their centred tangents, g the cotangents of the row's result:
//
//   jvp      p' = p c,                       o' = p' v + p v',                    lse' = sum p x'
//   vjp      dx = p (g.v - sum p g.v + g_lse), dq = scale dx k,  dk = scale dx q,  dv = p g,  dbias = dx
//
// and the derivatives of these along further tangents. A weight of 0 does not exist: what it would be
// multiplied by is not looked at.
#include "backends/c/helpers.h"

namespace loipe::c {

namespace {

/// Operands, and the places of one row in them.
constexpr std::string_view kTypes = R"(typedef struct {
  int64_t heads, groups, queries, keys, head_size, value_size, window;
  int is_causal;
  double scale;
  const $T *q, *k, *v;
  const uint8_t* mask; /* null: none */
  int64_t mask_heads;
  const $T* bias; /* null: none */
  int64_t bias_heads, bias_groups, bias_queries;
} $P_attention_$S;

/* Tangents of one direction, null for none. */
typedef struct {
  const $T *q, *k, *v, *bias;
} $P_tangents_$S;

/* Where gradients of one direction go, null for nowhere. */
typedef struct {
  double *q, *k, *v, *bias;
} $P_gradients_$S;

static inline int64_t $P_query_row_$S(const $P_attention_$S* a, int64_t head, int64_t group, int64_t i) {
  return (head * a->groups + group) * a->queries + i;
}

static inline int64_t $P_bias_row_$S(const $P_attention_$S* a, int64_t head, int64_t group, int64_t i) {
  return (head % a->bias_heads * a->bias_groups + group % a->bias_groups) * a->bias_queries +
         i % a->bias_queries;
}
)";

constexpr std::string_view kAddScores =
    R"(/* x[j] += scale <u, rows[j]> where the weight is not 0; nothing without u or rows. */
static void $P_add_scores_$S(const double* p, int64_t m, int64_t d, double scale, const $T* u, const $T* rows,
    double* x) {
  if (!u || !rows) return;
  for (int64_t j = 0; j < m; ++j) {
    if (p[j] == 0) continue;
    double sum = 0;
    for (int64_t c = 0; c < d; ++c) sum += (double)u[c] * (double)rows[j * d + c];
    x[j] += scale * sum;
  }
}
)";

constexpr std::string_view kCentre = R"(/* Subtracts the mean under the weights, which it returns. */
static double $P_centre_$S(const double* p, int64_t m, double* x) {
  double mean = 0;
  for (int64_t j = 0; j < m; ++j) mean += p[j] * x[j];
  for (int64_t j = 0; j < m; ++j) x[j] -= mean;
  return mean;
}
)";

constexpr std::string_view kAddRows =
    R"(/* y[c] += sum of w[j] f[j] rows[j][c] where the weight w[j] is not 0; f null: 1. */
static void $P_add_rows_$S(const double* w, const double* f, int64_t m, int64_t d, const $T* rows, double* y) {
  if (!rows) return;
  for (int64_t j = 0; j < m; ++j) {
    const double factor = w[j] != 0 && f ? w[j] * f[j] : w[j];
    if (factor == 0) continue;
    for (int64_t c = 0; c < d; ++c) y[c] += factor * (double)rows[j * d + c];
  }
}
)";

constexpr std::string_view kAddToRows = R"(/* rows[j][c] += scale w[j] f[j] u[c], likewise. */
static void $P_add_to_rows_$S(const double* w, const double* f, int64_t m, int64_t d, double scale, const $T* u,
    double* rows) {
  if (!u || !rows) return;
  for (int64_t j = 0; j < m; ++j) {
    const double factor = w[j] != 0 && f ? w[j] * f[j] : w[j];
    if (factor == 0) continue;
    for (int64_t c = 0; c < d; ++c) rows[j * d + c] += scale * factor * (double)u[c];
  }
}
)";

constexpr std::string_view kWeights = R"(/* The weights of a row; returns lse, -inf where it sees no key. */
static double $P_weights_$S(const $P_attention_$S* a, int64_t head, int64_t group, int64_t i, double* p) {
  const int64_t m = a->keys, d = a->head_size;
  const $T* q = a->q + $P_query_row_$S(a, head, group, i) * d;
  const $T* k = a->k + head * m * d;
  const uint8_t* mask = a->mask ? a->mask + (a->mask_heads == 1 ? 0 : head) * m : a->mask;
  const $T* bias = a->bias ? a->bias + $P_bias_row_$S(a, head, group, i) * m : a->bias;
  double largest = -INFINITY, total = 0;
  for (int64_t j = 0; j < m; ++j) {
    const int is_near = a->window == 0 || (j > i - a->window && j < i + a->window);
    const int is_seen = is_near && (!a->is_causal || j <= i) && (!mask || mask[j]);
    double sum = 0;
    for (int64_t c = 0; is_seen && c < d; ++c) sum += (double)q[c] * (double)k[j * d + c];
    p[j] = is_seen ? a->scale * sum + (bias ? (double)bias[j] : 0) : -INFINITY;
    if (p[j] > largest) largest = p[j];
  }
  for (int64_t j = 0; j < m; ++j) {
    p[j] = largest > -INFINITY && !(p[j] == -INFINITY) ? exp(p[j] - largest) : 0;
    total += p[j];
  }
  for (int64_t j = 0; total != 0 && j < m; ++j) p[j] /= total;
  return largest > -INFINITY ? largest + log(total) : -INFINITY;
}
)";

constexpr std::string_view kLogits = R"(/* x' = scale (q' k + q k') + bias', centred; returns lse'. */
static double $P_logits_$S(const $P_attention_$S* a, const $P_tangents_$S* t, const double* p, int64_t head,
    int64_t group, int64_t i, double* x) {
  const int64_t m = a->keys, d = a->head_size, row = $P_query_row_$S(a, head, group, i) * d;
  for (int64_t j = 0; j < m; ++j) x[j] = 0;
  $P_add_scores_$S(p, m, d, a->scale, t->q ? t->q + row : t->q, a->k + head * m * d, x);
  $P_add_scores_$S(p, m, d, a->scale, a->q + row, t->k ? t->k + head * m * d : t->k, x);
  for (int64_t j = 0; t->bias && j < m; ++j)
    if (p[j] != 0) x[j] += (double)t->bias[$P_bias_row_$S(a, head, group, i) * m + j];
  return $P_centre_$S(p, m, x);
}
)";

constexpr std::string_view kForward = R"(/* o and lse of one row; rows: m. */
static void $P_forward_$S(const $P_attention_$S* a, int64_t head, int64_t group, int64_t i, double* y, double* rows) {
  const int64_t m = a->keys, e = a->value_size;
  y[e] = $P_weights_$S(a, head, group, i, rows);
  $P_add_rows_$S(rows, 0, m, e, a->v + head * m * e, y);
}
)";

constexpr std::string_view kJvp = R"(/* o' and lse' of one row at the weights p; rows: m. */
static void $P_jvp_$S(const $P_attention_$S* a, const $P_tangents_$S* t, const double* p, int64_t head,
    int64_t group, int64_t i, double* y, double* rows) {
  const int64_t m = a->keys, e = a->value_size;
  y[e] = $P_logits_$S(a, t, p, head, group, i, rows);
  $P_add_rows_$S(p, rows, m, e, a->v + head * m * e, y);
  $P_add_rows_$S(p, 0, m, e, t->v ? t->v + head * m * e : t->v, y);
}
)";

/// p'' = p (c_s c_t + x'' - lse''), x'' = scale (q'_t k'_s + q'_s k'_t), o'' = p'' v + p'_t v'_s + p'_s v'_t.
constexpr std::string_view kJvpJvp = R"(/* The derivative of jvp along t in the direction s; rows: 3 m. */
static void $P_jvp_jvp_$S(const $P_attention_$S* a, const $P_tangents_$S* t, const $P_tangents_$S* s,
    const double* p, int64_t head, int64_t group, int64_t i, double* y, double* rows) {
  const int64_t m = a->keys, d = a->head_size, e = a->value_size;
  const int64_t row = $P_query_row_$S(a, head, group, i) * d, first_key = head * m * d, first_value = head * m * e;
  double *x_t = rows, *x_s = rows + m, *x = rows + 2 * m;
  $P_logits_$S(a, t, p, head, group, i, x_t);
  $P_logits_$S(a, s, p, head, group, i, x_s);
  for (int64_t j = 0; j < m; ++j) x[j] = 0;
  $P_add_scores_$S(p, m, d, a->scale, t->q ? t->q + row : t->q, s->k ? s->k + first_key : s->k, x);
  $P_add_scores_$S(p, m, d, a->scale, s->q ? s->q + row : s->q, t->k ? t->k + first_key : t->k, x);
  for (int64_t j = 0; j < m; ++j) x[j] += x_s[j] * x_t[j];
  y[e] = $P_centre_$S(p, m, x);
  $P_add_rows_$S(p, x, m, e, a->v + first_value, y);
  $P_add_rows_$S(p, x_t, m, e, s->v ? s->v + first_value : s->v, y);
  $P_add_rows_$S(p, x_s, m, e, t->v ? t->v + first_value : t->v, y);
}
)";

constexpr std::string_view kCotangents = R"(/* c = g.v - sum p g.v + g_lse; x has g.v. */
static void $P_cotangents_$S(const $P_attention_$S* a, const $T* g, const double* p, int64_t head, double* x,
    double* c) {
  const int64_t m = a->keys, e = a->value_size;
  for (int64_t j = 0; j < m; ++j) x[j] = 0;
  $P_add_scores_$S(p, m, e, 1, g, a->v + head * m * e, x);
  for (int64_t j = 0; j < m; ++j) c[j] = x[j];
  $P_centre_$S(p, m, c);
  for (int64_t j = 0; j < m; ++j) c[j] += (double)g[e];
}

/* Adds p f, a row of gradients by the bias. */
static void $P_add_to_bias_$S(const $P_attention_$S* a, const double* p, const double* f, int64_t head,
    int64_t group, int64_t i, double* bias) {
  for (int64_t j = 0; bias && j < a->keys; ++j)
    if (p[j] != 0) bias[$P_bias_row_$S(a, head, group, i) * a->keys + j] += p[j] * f[j];
}
)";

constexpr std::string_view kVjp = R"(/* What the row with cotangents g adds to the gradients; rows: 2 m. */
static void $P_vjp_$S(const $P_attention_$S* a, const $T* g, const double* p, int64_t head, int64_t group,
    int64_t i, const $P_gradients_$S* y, double* rows) {
  const int64_t m = a->keys, d = a->head_size, e = a->value_size;
  const int64_t row = $P_query_row_$S(a, head, group, i) * d;
  double* c = rows + m;
  $P_cotangents_$S(a, g, p, head, rows, c);
  if (y->q) {
    $P_add_rows_$S(p, c, m, d, a->k + head * m * d, y->q + row);
    for (int64_t k = 0; k < d; ++k) y->q[row + k] *= a->scale;
  }
  $P_add_to_rows_$S(p, c, m, d, a->scale, a->q + row, y->k ? y->k + head * m * d : y->k);
  $P_add_to_rows_$S(p, 0, m, e, 1, g, y->v ? y->v + head * m * e : y->v);
  $P_add_to_bias_$S(a, p, c, head, group, i, y->bias);
}
)";

/// dx' = p' c + p c', c' = g.v' - sum (p' g.v + p g.v'), with p' = p x' and x' centred.
constexpr std::string_view kVjpJvp = R"(/* The derivative of vjp along t; rows: 4 m. */
static void $P_vjp_jvp_$S(const $P_attention_$S* a, const $T* g, const $P_tangents_$S* t, const double* p,
    int64_t head, int64_t group, int64_t i, const $P_gradients_$S* y, double* rows) {
  const int64_t m = a->keys, d = a->head_size, e = a->value_size;
  const int64_t row = $P_query_row_$S(a, head, group, i) * d, first_key = head * m * d, first_value = head * m * e;
  double *values = rows, *c = rows + m, *x = rows + 2 * m, *change = rows + 3 * m, mean = 0;
  $P_cotangents_$S(a, g, p, head, values, c);
  $P_logits_$S(a, t, p, head, group, i, x);
  for (int64_t j = 0; j < m; ++j) change[j] = 0;
  $P_add_scores_$S(p, m, e, 1, g, t->v ? t->v + first_value : t->v, change);
  $P_centre_$S(p, m, change);
  for (int64_t j = 0; j < m; ++j)
    if (p[j] != 0) mean += p[j] * x[j] * values[j];
  for (int64_t j = 0; j < m; ++j)
    if (p[j] != 0) change[j] += x[j] * c[j] - mean;
  if (y->q) {
    $P_add_rows_$S(p, change, m, d, a->k + first_key, y->q + row);
    $P_add_rows_$S(p, c, m, d, t->k ? t->k + first_key : t->k, y->q + row);
    for (int64_t k = 0; k < d; ++k) y->q[row + k] *= a->scale;
  }
  $P_add_to_rows_$S(p, change, m, d, a->scale, a->q + row, y->k ? y->k + first_key : y->k);
  $P_add_to_rows_$S(p, c, m, d, a->scale, t->q ? t->q + row : t->q, y->k ? y->k + first_key : y->k);
  $P_add_to_rows_$S(p, x, m, e, 1, g, y->v ? y->v + first_value : y->v);
  $P_add_to_bias_$S(a, p, change, head, group, i, y->bias);
}
)";

}  // namespace

std::span<const Helper> attention_helpers() {
  static const std::vector<Helper> helpers{
      {"attention", kTypes},
      {"add_scores", kAddScores},
      {"centre", kCentre},
      {"add_rows", kAddRows},
      {"add_to_rows", kAddToRows},
      {"weights", kWeights, {"attention"}},
      {"logits", kLogits, {"attention", "add_scores", "centre"}},
      {"forward", kForward, {"weights", "add_rows"}},
      {"jvp", kJvp, {"weights", "logits", "add_rows"}},
      {"jvp_jvp", kJvpJvp, {"weights", "logits", "add_rows"}},
      {"cotangents", kCotangents, {"attention", "add_scores", "centre"}},
      {"vjp", kVjp, {"weights", "cotangents", "add_rows", "add_to_rows"}},
      {"vjp_jvp", kVjpJvp, {"weights", "logits", "cotangents", "add_rows", "add_to_rows"}},
  };
  return helpers;
}

}  // namespace loipe::c
