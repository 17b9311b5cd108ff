// SPDX-License-Identifier: Apache-2.0
#include "jacobian/batch.h"

#include "base/check.h"
#include "jacobian/arithmetic.h"
#include "jacobian/raw_term.h"

namespace loipe {

LocalJacobian batch_diagonal(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out,
                             const Shape& in) {
  require(!out.empty() && !in.empty() && out[0] == in[0], "a batched block has no common leading axis");
  const LocalJacobian terms = explicit_terms(recorder, jacobian, out, in, recorder.dtype());
  const Shape rest(in.begin() + 1, in.end());
  LocalJacobian result;
  for (const Term& term : terms.terms) {
    RawTerm raw;
    for (std::int64_t extent : term.extents) raw.add_label(extent);
    raw.out = term.out;
    raw.in.assign(term.in.begin() + 1, term.in.end());
    raw.coefficient = term.coefficient;
    for (const auto* labelled : {&term.value, &term.mask}) {
      if (!*labelled) continue;
      (labelled == &term.value ? raw.values : raw.masks).push_back(access_of(**labelled));
    }
    if (!(term.in[0] == term.out[0])) raw.equations.push_back({term.in[0], term.out[0], in[0]});
    if (!raw.solve(recorder.builder())) continue;
    if (auto normal = std::move(raw).normalised(recorder))
      add(recorder, result, std::move(*normal), out, rest);
  }
  return result;
}

}  // namespace loipe
