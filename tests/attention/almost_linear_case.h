// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/almost_linear.h"
#include "attention/attention_case.h"
#include "attention/threads_and_memory.h"

namespace loipe::attention::almost_linear::testing {

using attention::testing::Array;
using attention::testing::Case;
using attention::testing::Threads;
using attention::testing::Workspace;

/// A problem of attention with an approximation, drawn at random.
template <class E>
struct LinearCase {
  Case<E> c;
  Approximation approximation;
  std::vector<double> coefficients, basis;

  /// Pointers into this object, which may have moved.
  const Approximation& with_pointers() {
    approximation.coefficients = coefficients.data();
    approximation.basis = basis.empty() ? nullptr : basis.data();
    return approximation;
  }
  std::string text() const {
    return c.text() + "degree " + std::to_string(approximation.degree) + " window " +
           std::to_string(approximation.window) + " rank " + std::to_string(approximation.rank) +
           (approximation.is_centred ? " centred" : "") +
           (approximation.gradient == Gradient::paper ? " paper" : "");
  }
};

/// Orthonormal columns [heads][size][rank], by Gram and Schmidt.
inline std::vector<double> random_basis(std::int64_t heads, std::int64_t size, std::int64_t rank, Rng& rng) {
  std::vector<double> basis(static_cast<std::size_t>(heads * size * rank));
  const auto at = [&](std::int64_t h, std::int64_t c, std::int64_t r) -> double& {
    return basis[static_cast<std::size_t>((h * size + c) * rank + r)];
  };
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t r = 0; r < rank; ++r) {
      double norm = 0;
      for (std::int64_t c = 0; c < size; ++c) at(h, c, r) = rng.normal();
      for (std::int64_t other = 0; other < r; ++other) {
        double product = 0;
        for (std::int64_t c = 0; c < size; ++c) product += at(h, c, r) * at(h, c, other);
        for (std::int64_t c = 0; c < size; ++c) at(h, c, r) -= product * at(h, c, other);
      }
      for (std::int64_t c = 0; c < size; ++c) norm += at(h, c, r) * at(h, c, r);
      for (std::int64_t c = 0; c < size; ++c) at(h, c, r) /= std::sqrt(norm);
    }
  return basis;
}

/// Coefficients near those of exp, others for each head of keys.
inline std::vector<double> random_coefficients(std::int64_t heads, int degree, Rng& rng) {
  std::vector<double> coefficients;
  for (std::int64_t h = 0; h < heads; ++h) {
    double taylor = 1;
    for (int p = 0; p <= degree; ++p) {
      coefficients.push_back(taylor * (1 + 0.1 * rng.uniform()));
      taylor /= p + 1;
    }
  }
  return coefficients;
}

/// Draws what is not of the shape: logits so small that no denominator comes near 0.
template <class E>
void fill(LinearCase<E>& l, Rng& rng) {
  Case<E>& c = l.c;
  const Shape& s = c.shape;
  Approximation& a = l.approximation;
  a.is_centred = rng.chance(0.6);
  a.window = rng.chance(0.3) ? 1 + rng.below(150) : 0;
  a.gradient = rng.chance(0.3) ? Gradient::paper : Gradient::consistent;
  attention::testing::fill(c, rng, a.is_centred && rng.chance(0.3) ? 3 : 0);
  attention::testing::add_masks(c, rng);
  c.bias.clear();
  c.scale *= a.degree % 2 == 0 ? 0.3 : 0.1;
  l.coefficients = random_coefficients(s.kv_heads, a.degree, rng);
  if (s.head_size > 1 && rng.chance(0.3)) {
    a.rank = 1 + rng.below(s.head_size);
    l.basis = random_basis(s.kv_heads, s.head_size, a.rank, rng);
  }
}

template <class E>
LinearCase<E> random_linear_case(Rng& rng, std::int64_t largest = 200) {
  LinearCase<E> l;
  const std::int64_t kv_heads = 1 + rng.below(3);
  constexpr std::int64_t kSizes[] = {1, 2, 3, 5, 8, 9, 16, 24, 33};
  l.c.shape = {kv_heads * (1 + rng.below(3)),
               kv_heads,
               attention::testing::random_extent(rng, largest),
               attention::testing::random_extent(rng, largest),
               kSizes[rng.below(9)],
               kSizes[rng.below(9)]};
  l.c.is_causal = rng.chance(0.5);
  do l.approximation.degree = 1 + static_cast<int>(rng.below(6));
  while (feature_count(l.c.shape.head_size, l.approximation.degree) > 1500);
  fill(l, rng);
  return l;
}

/// What forward and vjp write.
template <class E>
struct LinearResults {
  Array<E> o, lse, denominator, q, k, v;
  std::vector<std::int64_t> guarded;

  explicit LinearResults(const Case<E>& c) {
    Rng rng(static_cast<std::uint64_t>(c.shape.queries * 31 + c.shape.keys));
    const Shape& s = c.shape;
    o = Array<E>(s.heads, s.queries, s.value_size, rng), lse = Array<E>(s.heads, s.queries, 1, rng);
    denominator = Array<E>(s.heads, s.queries, 1, rng), q = Array<E>(s.heads, s.queries, s.head_size, rng);
    k = Array<E>(s.kv_heads, s.keys, s.head_size, rng), v = Array<E>(s.kv_heads, s.keys, s.value_size, rng);
    guarded.resize(static_cast<std::size_t>(s.kv_heads), -1);
  }
  ForwardResults<E> forward() { return {o.rows(), lse.rows(), denominator.rows(), guarded.data()}; }
  InputCotangents<E> inputs() { return {q.rows(), k.rows(), v.rows(), {}}; }
  bool operator==(const LinearResults&) const = default;
};

/// Forward and vjp; false if a workspace was left.
template <class E>
bool run(LinearCase<E>& l, LinearResults<E>& r, const Parallel& parallel = {}) {
  const Problem<E> p = l.c.problem();
  const Approximation& a = l.with_pointers();
  Workspace forward_memory(forward_workspace(p, a, parallel.threads));
  forward<E>(p, a, r.forward(), parallel, forward_memory.bytes());
  Workspace vjp_memory(vjp_workspace(p, a, parallel.threads));
  vjp<E>(p, a, {r.o.rows(), r.denominator.rows()}, l.c.cotangents(), r.inputs(), parallel,
         vjp_memory.bytes());
  return forward_memory.is_whole() && vjp_memory.is_whole();
}

}  // namespace loipe::attention::almost_linear::testing
