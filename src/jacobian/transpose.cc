// SPDX-License-Identifier: Apache-2.0
#include "jacobian/transpose.h"

#include "jacobian/arithmetic.h"
#include "jacobian/raw_term.h"

namespace loipe {

LocalJacobian transposed(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out, const Shape& in,
                         std::size_t kept) {
  const LocalJacobian terms = explicit_terms(recorder, jacobian, out, in, recorder.dtype());
  LocalJacobian result;
  for (const Term& term : terms.terms) {
    RawTerm raw;
    for (std::int64_t extent : term.extents) raw.add_label(extent);
    const auto middle = term.out.begin() + static_cast<std::ptrdiff_t>(kept);
    raw.out.assign(term.out.begin(), middle);
    raw.out.insert(raw.out.end(), term.in.begin(), term.in.end());
    raw.in.assign(middle, term.out.end());
    raw.coefficient = term.coefficient;
    if (term.value) raw.values.push_back(access_of(*term.value));
    if (term.mask) raw.masks.push_back(access_of(*term.mask));
    if (auto normal = std::move(raw).normalised(recorder)) result.terms.push_back(std::move(*normal));
  }
  return result;
}

}  // namespace loipe
