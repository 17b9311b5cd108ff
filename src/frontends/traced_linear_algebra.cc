// SPDX-License-Identifier: Apache-2.0
#include "frontends/trace.h"
#include "ops/op_list.h"

namespace loipe {

Traced triangular_solve(const Traced& a, const Traced& b, const TriangularSolve& options) {
  const Attributes attributes{{"lower", std::int64_t{options.lower}},
                              {"transposed", std::int64_t{options.transposed}},
                              {"unit_diagonal", std::int64_t{options.unit_diagonal}}};
  if (b.rank() + 1 != a.rank()) return emit(ops::op_triangular_solve, {a, b}, attributes);
  // One right-hand side per matrix: a single column.
  const Shape shape = b.shape();
  Shape column = shape;
  column.push_back(1);
  return reshape(emit(ops::op_triangular_solve, {a, reshape(b, column)}, attributes), shape);
}

Traced cholesky(const Traced& a) { return emit(ops::op_cholesky, {a}); }

}  // namespace loipe
