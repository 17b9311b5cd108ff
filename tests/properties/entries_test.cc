// SPDX-License-Identifier: Apache-2.0
// The entries of a block, recorded from its terms, are those of the dense block, and outside
// the pattern the dense block is zero.
#include "jacobian/entries.h"

#include <gtest/gtest.h>

#include "driver/sparse_pattern.h"
#include "ir/interpreter.h"
#include "jacobian/arithmetic.h"
#include "support/dense_jacobian.h"
#include "support/random_term.h"

namespace loipe {
namespace {

using testing::RandomTerms;

LocalJacobian random_block(RandomTerms& random, Recorder& recorder, const Shape& out, const Shape& in) {
  LocalJacobian block;
  for (std::int64_t i = random.rng().between(1, 3); i > 0; --i)
    for (const Term& term : random.term(out, in).terms) add(recorder, block, term, out, in);
  return block;
}

std::int64_t nonzeros(const Tensor& tensor) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) count += tensor.at(i) != 0;
  return count;
}

void expect_sorted_without_duplicates(const SparsePattern& pattern) {
  for (std::size_t i = 1; i < pattern.rows.size(); ++i)
    ASSERT_LT(std::pair(pattern.rows[i - 1], pattern.columns[i - 1]),
              std::pair(pattern.rows[i], pattern.columns[i]));
}

class EntriesLaw : public ::testing::TestWithParam<bool> {};

TEST_P(EntriesLaw, AreThoseOfTheDenseBlock) {
  const bool has_examples = GetParam();
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTerms random(seed);
    Recorder recorder(random.builder());
    Shape out = random.shape();
    if (has_examples) out.insert(out.begin(), random.rng().between(1, 3));
    const BlockShape shape{out, random.shape(), has_examples};
    const LocalJacobian block = random_block(random, recorder, shape.out, shape.in);
    const SparsePattern pattern = sparse_pattern(block, shape);
    expect_sorted_without_duplicates(pattern);
    const Value results[] = {materialize(recorder, block, shape.out, shape.in, DType::f64),
                             entries(recorder, block, shape, pattern, DType::f64)};
    const std::vector<Tensor> found =
        evaluate(random.builder().finish({std::begin(results), std::end(results)}), random.arguments());
    const Tensor expected = values_at(pattern, found[0], has_examples);
    ASSERT_EQ(to_string(found[1].type()), to_string(expected.type()));
    ASSERT_LT(testing::relative_deviation(found[1], expected, 1.0), 1e-12) << to_string(block);
    ASSERT_EQ(nonzeros(found[0]), nonzeros(expected))
        << "an entry is outside the pattern of " << to_string(block);
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, EntriesLaw, ::testing::Bool());

}  // namespace
}  // namespace loipe
