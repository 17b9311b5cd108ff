// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"

// Recipes for the samples of ops.

namespace loipe::ops {

/// Draws one number.
using Draw = double (*)(Rng&);

template <double low, double high>
double between(Rng& rng) {
  return rng.uniform(low, high);
}

/// Of either sign, and at least `low` away from 0.
template <double low, double high>
double away_from_zero(Rng& rng) {
  const double magnitude = rng.uniform(low, high);
  return rng.chance(0.5) ? magnitude : -magnitude;
}

inline double boolean(Rng& rng) { return rng.chance(0.5) ? 1 : 0; }
inline double small_integer(Rng& rng) { return static_cast<double>(rng.between(-4, 4)); }

/// Entries drawn one by one, row-major.
Tensor draw_tensor(Rng& rng, DType dtype, Shape shape, Draw draw);

/// Operand shapes for ops of one, two and three operands: scalars, equal shapes,
/// both kinds of broadcasting, extents 1 and 0, up to rank 3.
std::span<const std::vector<Shape>> elementwise_shapes(std::size_t operand_count);

/// One sample per list of shapes; operand k has dtypes[k] and entries from draws[k].
std::vector<Sample> elementwise_samples(Rng& rng, std::span<const DType> dtypes, std::span<const Draw> draws,
                                        const Attributes& attributes = {});

/// Floating operands, one draw each.
template <Draw... draws>
std::vector<Sample> floating_samples(Rng& rng) {
  const Draw list[] = {draws...};
  const std::vector<DType> dtypes(sizeof...(draws), DType::f64);
  return elementwise_samples(rng, dtypes, list);
}

/// The samples of one dtype with small integers (bool: 0 and 1).
std::vector<Sample> integral_samples(Rng& rng, DType dtype, std::size_t operand_count);

/// Floating operands, and the integer types.
template <Draw... draws>
std::vector<Sample> numeric_samples(Rng& rng) {
  std::vector<Sample> samples = floating_samples<draws...>(rng);
  for (DType dtype : {DType::i32, DType::i64})
    for (Sample& sample : integral_samples(rng, dtype, sizeof...(draws)))
      samples.push_back(std::move(sample));
  return samples;
}

/// bool and the integer types.
template <std::size_t operand_count>
std::vector<Sample> logical_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (DType dtype : {DType::boolean, DType::i32, DType::i64})
    for (Sample& sample : integral_samples(rng, dtype, operand_count)) samples.push_back(std::move(sample));
  return samples;
}

/// A call with rank-0 f64 operands.
Sample scalar_sample(std::initializer_list<double> operands, const Attributes& attributes = {});

}  // namespace loipe::ops
