// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rng.h"
#include "orders/published/graph.h"

namespace loipe::agent {

/// A function of numbers: products, sums and unary functions of values drawn near one
/// another, so many vertices; how far back operands lie, how many values are used often,
/// and how many are unary is drawn for each graph.
published::Graph random_scalar_graph(Rng& rng, int vertices);

/// A function of vectors and matrices of a few common extents: elementwise functions,
/// products of matrices and vectors, transposes, sums, broadcasts and shared scalars, by the
/// same rules as the benchmark functions, but not those.
published::Graph random_tensor_graph(Rng& rng, int vertices);

/// Either, of 12 to `most` vertices (small ones are more frequent): what the general agent
/// learns from.
published::Graph random_training_graph(Rng& rng, int most);

}  // namespace loipe::agent
