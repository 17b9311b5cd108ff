// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/states.h"

namespace loipe::attention::almost_linear {

namespace {

/// Of the slots of a group, where a state is not larger.
constexpr std::int64_t kSlotBytes = std::int64_t{32} << 20;
/// Tasks of a wave that keep many threads busy.
constexpr std::int64_t kTasks = 32;
constexpr std::int64_t kFeaturesOfPart = 64;

}  // namespace

template <class E>
States<E>::States(const Geometry<E>& geometry, bool has_values, Arena& arena) : g_(geometry) {
  const Approximation& a = g_.approximation;
  const std::int64_t kv_heads = std::max<std::int64_t>(g_.problem.shape.kv_heads, 1);
  const std::int64_t fitting =
      std::max<std::int64_t>(kSlotBytes / static_cast<std::int64_t>(sizeof(E)) / g_.state_size(), 1);
  const std::int64_t chunks = std::max<std::int64_t>({g_.query_chunks, g_.key_chunks, 1});
  degree_ = g_.table.monomials().degree;
  group_ = std::min(kv_heads, std::max<std::int64_t>(fitting, 4));
  wave_ = std::clamp<std::int64_t>(fitting / group_, 1, std::min(divide_up(kTasks, group_), chunks));
  const bool has_own = has_values && degree_ != a.degree;
  value_features_ = degree_ != a.degree ? g_.table.low() : g_.table.count();
  const auto take = [&](std::int64_t states, std::int64_t size) {
    return arena.take<E>(group_ * states * size);
  };
  running_ = take(1, g_.state_size());
  slots_ = take(wave_, g_.state_size());
  value_running_ = take(has_own ? 1 : 0, value_features_ * g_.pitch);
  value_slots_ = take(has_own ? wave_ : 0, value_features_ * g_.pitch);
  weights_ = arena.take<E>(kv_heads * g_.table.count());
  value_weights_ = arena.take<E>(has_own ? kv_heads * value_features_ : 0);
  if (!has_own) value_running_ = nullptr;
}

/// P has the weights a_p p! / beta!, its antiderivative a_{p-1} / p instead of a_p (its constant is of no
/// consequence).
template <class E>
void States<E>::fill() {
  const Approximation& a = g_.approximation;
  for (std::int64_t h = 0; h < g_.problem.shape.kv_heads; ++h) {
    const double* const of_p = a.coefficients + h * (a.degree + 1);
    int p = 0;
    for (std::int64_t f = 0; f < g_.table.count(); ++f) {
      while (f >= g_.table.monomials().end(p)) ++p;
      const E multiplicity = g_.table.multiplicities()[f];
      E& weight = weights_[h * g_.table.count() + f];
      if (degree_ == a.degree) weight = static_cast<E>(of_p[p]) * multiplicity;
      else weight = p > 0 ? static_cast<E>(of_p[p - 1] / p) * multiplicity : E{0};
      if (has_own() && f < value_features_)
        value_weights_[h * value_features_ + f] = static_cast<E>(of_p[p]) * multiplicity;
    }
  }
}

template <class E>
void States<E>::clear(std::int64_t heads) {
  std::fill(running_, running_ + heads * g_.state_size(), E{0});
  if (has_own()) std::fill(value_running_, value_running(heads), E{0});
}

template <class E>
template <class Body>
void States<E>::for_each_part(const Parallel& parallel, std::int64_t heads, Body&& body) {
  const std::int64_t count = g_.table.count(), parts = divide_up(count, kFeaturesOfPart);
  for_each(parallel, heads * parts, [&](std::int64_t task, int) {
    const std::int64_t first = task % parts * kFeaturesOfPart;
    body(Part{task / parts, first, std::min(first + kFeaturesOfPart, count)});
  });
}

template <class E>
void States<E>::step(const Part& part, const Step& s) {
  const std::int64_t at = part.first * g_.pitch, values = std::min(part.end, value_features_) - part.first;
  E* const slot = this->slot(part.head, s.position) + at;
  const E* const added = s.is_added ? slot : nullptr;
  if (has_own() && values > 0)
    g_.kernels.step_state({value_running(part.head) + at, added,
                           s.is_kept ? value_slot(part.head, s.position) + at : nullptr,
                           value_weights_ + s.key_head * value_features_ + part.first, values, g_.pitch});
  g_.kernels.step_state({running_ + part.head * g_.state_size() + at, added, s.is_kept ? slot : nullptr,
                         weights(s.key_head) + part.first, part.end - part.first, g_.pitch});
}

template <class E>
void States<E>::scan(const Parallel& parallel, const Scan& s) {
  for_each_part(parallel, s.heads, [&](const Part& part) {
    for (std::int64_t i = 0; i < s.chunks; ++i) {
      const std::int64_t position = s.is_reversed ? s.chunks - 1 - i : i;
      step(part, {s.key_head + part.head, position, position >= s.first && position < s.end, true});
    }
  });
}

template <class E>
void States<E>::total(const Parallel& parallel, const Scan& s) {
  for_each_part(parallel, s.heads, [&](const Part& part) {
    for (std::int64_t position = s.first; position < s.end; ++position)
      step(part, {s.key_head + part.head, position, true, false});
  });
}

template class States<float>;
template class States<double>;

}  // namespace loipe::attention::almost_linear
