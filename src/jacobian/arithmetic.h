// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/local_jacobian.h"
#include "jacobian/recorder.h"

// Product and sum of local Jacobians, recorded into a program.

namespace loipe {

/// The types at the three ends of a product post * pre.
struct ProductShapes {
  const Shape& out;
  const Shape& middle;
  const Shape& in;
};

/// One term of the product of two terms, in normal form; nothing when it is a
/// structural zero. See raw_term.h for how equations are solved.
std::optional<Term> multiply(Recorder& recorder, const Term& post, const Term& pre, const Shape& middle);

/// post * pre: all pairs of terms, summed. An implicit factor multiplies by its
/// VJP or JVP.
LocalJacobian multiply(Recorder& recorder, const LocalJacobian& post, const LocalJacobian& pre,
                       const ProductShapes& shapes);

/// Adds a term: to an equal pattern (after one common refinement where that makes
/// them equal); else joined with another term when the joined value is no larger
/// than the two together, or with the whole list when that is no larger than the
/// list; else kept beside the others.
void add(Recorder& recorder, LocalJacobian& sum, Term term, const Shape& out, const Shape& in);
void add(Recorder& recorder, LocalJacobian& sum, const LocalJacobian& other, const Shape& out,
         const Shape& in);

/// The dense array of shape out + in. Zeros where there are no terms.
Value materialize(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out, const Shape& in,
                  DType dtype);

/// The term with its mask applied to its value: an entry that the mask hides is 0.
Term without_mask(Recorder& recorder, Term term);

/// The terms of an implicit Jacobian: it is applied to unit directions.
LocalJacobian explicit_terms(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out,
                             const Shape& in, DType dtype);

}  // namespace loipe
