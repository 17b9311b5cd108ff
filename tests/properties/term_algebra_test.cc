// SPDX-License-Identifier: Apache-2.0
// Law 3: product and sum of structures, then densify = densify, then product and sum.
#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "jacobian/arithmetic.h"
#include "support/dense_jacobian.h"
#include "support/random_term.h"

namespace loipe {
namespace {

using testing::RandomTerms;
using testing::relative_deviation;

/// a (out x middle) * b (middle x in) of flattened matrices.
Tensor dense_product(const Tensor& a, const Tensor& b, const Shape& out, const Shape& middle,
                     const Shape& in) {
  const std::int64_t m = element_count(out), k = element_count(middle), n = element_count(in);
  Shape shape = out;
  shape.insert(shape.end(), in.begin(), in.end());
  Tensor result(TensorType{DType::f64, shape});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += a.at(i * k + l) * b.at(l * n + j);
      result.set(i * n + j, sum);
    }
  return result;
}

LocalJacobian random_list(RandomTerms& terms, Recorder& recorder, const Shape& out, const Shape& in,
                          std::int64_t count) {
  LocalJacobian sum;
  for (std::int64_t i = 0; i < count; ++i)
    for (const Term& term : terms.term(out, in).terms) add(recorder, sum, term, out, in);
  return sum;
}

TEST(TermAlgebra, ProductsOfRandomTermsAreDenseProducts) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTerms terms(seed);
    Recorder recorder(terms.builder());
    const Shape out = terms.shape(), middle = terms.shape(), in = terms.shape();
    const LocalJacobian post = random_list(terms, recorder, out, middle, terms.rng().between(1, 2));
    const LocalJacobian pre = random_list(terms, recorder, middle, in, terms.rng().between(1, 2));
    const LocalJacobian product = multiply(recorder, post, pre, {out, middle, in});
    const Value results[] = {materialize(recorder, post, out, middle, DType::f64),
                             materialize(recorder, pre, middle, in, DType::f64),
                             materialize(recorder, product, out, in, DType::f64)};
    const std::vector<Tensor> dense =
        evaluate(terms.builder().finish({std::begin(results), std::end(results)}), terms.arguments());
    ASSERT_LT(relative_deviation(dense[2], dense_product(dense[0], dense[1], out, middle, in), 1.0), 1e-12)
        << to_string(post) << "\ntimes\n"
        << to_string(pre) << "\ngives\n"
        << to_string(product);
  }
}

TEST(TermAlgebra, SumsOfRandomTermsAreDenseSums) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTerms terms(seed + 100'000);
    Recorder recorder(terms.builder());
    const Shape out = terms.shape(), in = terms.shape();
    LocalJacobian sum;
    std::vector<Value> results;
    for (std::int64_t i = 0; i < 4; ++i) {
      const LocalJacobian term = terms.term(out, in);
      results.push_back(materialize(recorder, term, out, in, DType::f64));
      add(recorder, sum, term, out, in);
    }
    results.push_back(materialize(recorder, sum, out, in, DType::f64));
    std::vector<Tensor> dense = evaluate(terms.builder().finish(results), terms.arguments());
    Tensor expected = dense[0];
    for (std::size_t i = 1; i < 4; ++i)
      for (std::int64_t e = 0; e < expected.element_count(); ++e)
        expected.set(e, expected.at(e) + dense[i].at(e));
    ASSERT_LT(relative_deviation(dense[4], expected, 1.0), 1e-12) << to_string(sum);
  }
}

}  // namespace
}  // namespace loipe
