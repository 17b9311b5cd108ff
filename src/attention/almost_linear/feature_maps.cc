// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/feature_maps.h"

namespace loipe::attention::almost_linear {

template <class E>
typename FeatureMaps<E>::Memory FeatureMaps<E>::take(Arena& arena) const {
  Memory m{};
  m.low = arena.take<E>(g_.panels * g_.panel_of(g_.table.low()));
  m.d_low = arena.take<E>(g_.panel_of(g_.table.low()));
  m.top = arena.take<E>(g_.panels * g_.panel_of(kRows));
  return m;
}

/// The features of degree below end_degree.
template <class E>
void FeatureMaps<E>::expand_low(const Operand& tokens, int end_degree, E* low) const {
  const Monomials& monomials = g_.table.monomials();
  if (tokens.constant != nullptr) std::copy_n(tokens.constant, g_.lanes, low);
  else std::fill(low, low + g_.lanes, E{1});
  for (int p = 1; p < end_degree; ++p) {
    const std::ptrdiff_t first = monomials.end(p - 1);
    g_.kernels.expand({&monomials, first, monomials.end(p) - first, tokens.x, low, low + g_.panel_of(first)});
  }
}

template <class E>
void FeatureMaps<E>::add_to_state(const Operand* tokens, std::int64_t count, const StateSum<E>& to,
                                  const Memory& m) const {
  const Monomials& monomials = g_.table.monomials();
  const std::int64_t low = g_.table.low(), low_panel = g_.panel_of(low), top_panel = g_.panel_of(kRows);
  const auto multiply = [&](std::int64_t first, const E* features, std::int64_t a_panel, std::int64_t rows) {
    g_.kernels.multiply_tokens({to.state + first * g_.pitch, g_.pitch, features, a_panel, tokens->blocks,
                                count > 1 ? tokens[1].blocks - tokens[0].blocks : 0, rows, g_.value_size,
                                count, to.continues, to.weights == nullptr ? nullptr : to.weights + first,
                                tokens->last, count > 1 ? tokens[1].last - tokens[0].last : 0});
  };
  for (std::int64_t panel = 0; panel < count; ++panel)
    expand_low(tokens[panel], monomials.degree, m.low + panel * low_panel);
  multiply(0, m.low, low_panel, low);
  for_each_top_block([&](std::int64_t first, std::int64_t rows) {
    for (std::int64_t panel = 0; panel < count; ++panel)
      g_.kernels.expand(
          {&monomials, first, rows, tokens[panel].x, m.low + panel * low_panel, m.top + panel * top_panel});
    multiply(first, m.top, top_panel, rows);
  });
}

template <class E>
void FeatureMaps<E>::apply_state(const E* state, std::int64_t features, const Operand& tokens,
                                 std::int64_t rows, bool accumulate, E* out, const Memory& m) const {
  const Monomials& monomials = g_.table.monomials();
  expand_low(tokens, monomials.degree, m.low);
  g_.kernels.multiply_columns({out, state, g_.pitch, m.low, nullptr, rows, g_.table.low(), accumulate});
  const std::int64_t first = g_.table.low();
  if (features > first)
    g_.kernels.multiply_features({out, state + first * g_.pitch, g_.pitch, rows, &monomials, first,
                                  features - first, tokens.x, m.low});
}

/// From the highest degree down: what arrives at a feature is <state, d> and, from its children, d_child x;
/// from there it goes to the coordinate and to the parent.
template <class E>
void FeatureMaps<E>::differentiate(const E* state, const E* d, const Operand& tokens, E* d_x,
                                   const Memory& m) const {
  const Monomials& monomials = g_.table.monomials();
  expand_low(tokens, monomials.degree, m.low);
  std::fill(m.d_low, m.d_low + g_.panel_of(g_.table.low()), E{0});
  for (int p = monomials.degree; p >= 1; --p) {
    const std::int64_t first = monomials.end(p - 1), count = monomials.end(p) - first;
    g_.kernels.differentiate_features({state + first * g_.pitch, g_.pitch, d, g_.pitch, &monomials, first,
                                       count, tokens.x, m.low, d_x, m.d_low, p < monomials.degree});
  }
}

template class FeatureMaps<float>;
template class FeatureMaps<double>;

}  // namespace loipe::attention::almost_linear
