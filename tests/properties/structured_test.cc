// SPDX-License-Identifier: Apache-2.0
// The structured form of a block, as users get it, stands for the block.
#include "jacobian/structured.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "jacobian/arithmetic.h"
#include "support/dense_jacobian.h"
#include "support/random_term.h"

namespace loipe {
namespace {

using testing::RandomTerms;
using testing::relative_deviation;

Tensor random_tensor(Rng& rng, const Shape& shape) {
  Tensor tensor(TensorType{DType::f64, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng.uniform(-1, 1));
  return tensor;
}

/// dense (out x in) times v, or u times dense.
Tensor product(const Tensor& dense, const Tensor& vector, const Shape& result_shape, bool transposed) {
  Tensor result(TensorType{DType::f64, result_shape});
  const std::int64_t rows = transposed ? vector.element_count() : result.element_count();
  const std::int64_t columns = transposed ? result.element_count() : vector.element_count();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t to = transposed ? j : i, from = transposed ? i : j;
      result.set(to, result.at(to) + dense.at(i * columns + j) * vector.at(from));
    }
  return result;
}

TEST(StructuredBlock, StandsForTheDenseBlock) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTerms random(seed);
    Recorder recorder(random.builder());
    const Shape out = random.shape(), in = random.shape();
    LocalJacobian sum;
    for (std::int64_t i = random.rng().between(1, 3); i > 0; --i)
      for (const Term& term : random.term(out, in).terms) add(recorder, sum, term, out, in);
    const StructuredValues form = structured(recorder, sum, out, in, DType::f64);
    std::vector<Value> results = form.tensors;
    results.push_back(materialize(recorder, sum, out, in, DType::f64));
    std::vector<Tensor> tensors = evaluate(random.builder().finish(results), random.arguments());
    const Tensor dense = tensors.back();
    tensors.pop_back();
    ASSERT_LT(relative_deviation(densify(form.block, tensors), dense, 1.0), 1e-12) << to_string(sum);
    const Tensor v = random_tensor(random.rng(), in), u = random_tensor(random.rng(), out);
    ASSERT_LT(relative_deviation(multiply(form.block, tensors, v), product(dense, v, out, false), 1.0),
              1e-12);
    ASSERT_LT(
        relative_deviation(multiply_transposed(form.block, tensors, u), product(dense, u, in, true), 1.0),
        1e-12);
  }
}

TEST(StructuredBlock, SaysWhatItIs) {
  StructuredTerm term{{8, 3, 4}, {{0, {{0, 1}}}, {1, {{1, 2}}}}, {{0, {{0, 1}}}, {}}, -1, 0, {0, 1}};
  term.in[1] = {0, {}, {2}, {3, 1, 0, 2}};
  EXPECT_EQ(to_string(term), "(a, 2*b+1 | a, [3,1,0,2][c]) a<8, b<3, c<4 : -#0[a,b]");
}

TEST(StructuredBlock, RefusesWhatDoesNotFit) {
  const StructuredBlock diagonal{
      {3}, {3}, DType::f64, {{{3}, {{0, {{0, 1}}}}, {{0, {{0, 1}}}}, 1, 0, {0}}}, {{DType::f64, {3}}}};
  const std::vector<Tensor> tensors{Tensor::of<double>({3}, {1, 2, 3})};
  EXPECT_EQ(multiply(diagonal, tensors, Tensor::of<double>({3}, {1, 1, 2})),
            Tensor::of<double>({3}, {1, 2, 6}));
  EXPECT_THROW(densify(diagonal, {}), UserError);
  EXPECT_THROW(densify(diagonal, std::vector{Tensor::of<double>({2}, {1, 2})}), UserError);
  EXPECT_THROW(multiply(diagonal, tensors, Tensor::of<double>({2}, {1, 2})), UserError);
  EXPECT_THROW(multiply_transposed(diagonal, tensors, Tensor::of<std::int32_t>({3}, {1, 2, 3})), UserError);
  EXPECT_EQ(diagonal.stored_elements(), 3);
}

}  // namespace
}  // namespace loipe
