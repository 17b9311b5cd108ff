// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/exact/attention.h"

// The functions of exact/attention.h by their definitions: one row of logits at a time, in f64, on one
// thread, allocating what they need. The oracle of the kernels; slow.

namespace loipe::attention::reference {

template <class E>
void forward(const Problem<E>& problem, const ForwardResults<E>& results);

/// Ignores `saved`.
template <class E>
void vjp(const Problem<E>& problem, const Cotangents<E>& cotangents, const InputCotangents<E>& results);

template <class E>
void jvp(const Problem<E>& problem, const InputTangents<E>& tangents, const Tangents<E>& results);

template <class E>
void vjp_jvp(const Problem<E>& problem, const Cotangents<E>& cotangents, const InputTangents<E>& tangents,
             const Cotangents<E>& cotangent_tangents, const InputCotangents<E>& results);

}  // namespace loipe::attention::reference
