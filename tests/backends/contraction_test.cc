// SPDX-License-Identifier: Apache-2.0
// Products of every kind of label, of sizes around the blocking factors.
#include "backends/backend_testing.h"

namespace loipe {
namespace {

class Contraction : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Simd, Contraction, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

Tensor random_tensor(Rng& rng, DType dtype, const Shape& shape) {
  Tensor tensor(TensorType{dtype, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, dtype == DType::boolean ? (rng.chance(0.6) ? 1 : 0) : rng.uniform(-1, 1));
  return tensor;
}

/// Operands for a spec: upper-case operands are masks over the same labels in lower case.
Sample sample_of(Rng& rng, const std::string& spec, DType dtype, const std::vector<std::int64_t>& extents) {
  Sample sample;
  std::string lower;
  Shape shape;
  bool is_mask = false;
  const std::string operands = spec.substr(0, spec.find("->"));
  for (char c : operands + ",") {
    if (c == ',') {
      sample.operands.push_back(random_tensor(rng, is_mask ? DType::boolean : dtype, shape));
      shape.clear();
      is_mask = false;
    } else {
      is_mask = std::isupper(static_cast<unsigned char>(c)) != 0;
      shape.push_back(extents[static_cast<std::size_t>(std::tolower(c) - 'a')]);
    }
  }
  for (char c : spec) lower += static_cast<char>(std::tolower(c));
  sample.attributes.set("spec", lower);
  return sample;
}

void expect_einsum_agrees(const Sample& sample, DType dtype, std::int64_t terms) {
  const Program program = one_node_program(find_op("einsum"), sample);
  const std::vector<Tensor> expected = evaluate(program, sample.operands);
  const double growth = std::sqrt(static_cast<double>(std::max<std::int64_t>(terms, 1)));
  const auto one = find_backend("jit").compile(program, {.threads = 1});
  const std::vector<Tensor> results = run_guarded(*one, sample.operands);
  expect_agreement(results, expected, 1e-15 * growth, 5e-7 * growth);
  const auto two = find_backend("jit").compile(program, {.threads = 2});
  EXPECT_TRUE(run_guarded(*two, sample.operands) == results) << "two threads differ, " << to_string(dtype);
}

constexpr const char* kSpecs[] = {
    // matrix products in all orders of axes
    "ab,bc->ac",
    "ba,bc->ac",
    "ab,cb->ac",
    "ba,cb->ac",
    "ab,bc->ca",
    "ba,cb->ca",
    // batches: leading, in between, innermost
    "dab,dbc->dac",
    "adb,bdc->adc",
    "abd,bcd->acd",
    "dab,bc->dac",
    "dab,dbc->adc",
    "abd,dbc->dca",
    // several labels of a kind, mergeable or not
    "abde,dec->abc",
    "adbe,ecd->abc",
    "daeb,bcd->aec",
    "abd,bce->dace",
    "adb,bec->aced",
    "abd,bd->a",
    // vectors and scalars
    "a,a->",
    "ab,ab->a",
    "ab,ab->b",
    "ab,ab->",
    "ab,b->a",
    "ba,b->a",
    "b,ba->a",
    "a,b->ab",
    "a,b->ba",
    ",ab->ba",
    "ab,->a",
    // one operand, labels of one operand only, diagonals, several factors
    "ab->a",
    "ab->b",
    "ab->",
    "aab->b",
    "aab,bc->ac",
    "aa,ab->b",
    "abd,bc->ac",
    "ab,bc,cd->ad",
    "ab,a,b->",
    "ab,bc,ac->a",
    // masks on summed and on other labels
    "ab,bc,AB->ac",
    "ab,bc,AC->ac",
    "ab,bc,AC,B->ac",
    "ab,AB->a",
    "ab,AB->ab",
    "a,b,AB->ab",
    "a,b,A->",
    "ab,bc,D->ac",
};

TEST_P(Contraction, EveryKindOfLabelAgrees) {
  Rng rng(5);
  const std::int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 65};
  for (const char* spec : kSpecs)
    for (int repetition = 0; repetition < 12; ++repetition) {
      std::vector<std::int64_t> extents(5);
      std::int64_t combinations = 1;
      for (std::int64_t& e : extents) {
        do e = sizes[rng.below(15)];
        while (combinations * e > 60000);
        combinations *= std::max<std::int64_t>(e, 1);
      }
      for (std::size_t i = extents.size(); i > 1; --i)
        std::swap(extents[i - 1], extents[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(i)))]);
      SCOPED_TRACE(std::string(spec) + " with extents " + to_string(extents));
      for (DType dtype : {DType::f64, DType::f32})
        expect_einsum_agrees(sample_of(rng, spec, dtype, extents), dtype, combinations);
    }
}

/// Infinities behind a mask do not reach the sum.
TEST_P(Contraction, MaskedTermsAreNeverMultiplied) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const char* spec : {"ab,bc,ab->ac", "ab,bc,ab->"}) {
    Sample sample{{Tensor::of<double>({2, 2}, {0, 1, 2, 0}), Tensor::of<double>({2, 1}, {inf, 3}),
                   Tensor::of<bool>({2, 2}, {false, true, false, true})},
                  {{"spec", std::string(spec)}}};
    const Program program = one_node_program(find_op("einsum"), sample);
    EXPECT_EQ(find_backend("jit").compile(program)->run(sample.operands)[0].at(0), 3);
  }
  Sample sample{{Tensor::of<double>({2}, {0, 1}), Tensor::of<double>({2}, {inf, 3}),
                 Tensor::of<bool>({2}, {false, true})},
                {{"spec", std::string("a,a,a->a")}}};
  const Tensor result =
      find_backend("jit").compile(one_node_program(find_op("einsum"), sample))->run(sample.operands)[0];
  EXPECT_TRUE(result == Tensor::of<double>({2}, {0, 3}));
}

/// Whatever stands behind masks, and whatever does not: results are finite, infinite or NaN as those
/// of the interpreter are. (But for a sum that factors: there inf times a sum is not the sum of inf times.)
TEST_P(Contraction, MasksHideInfinitiesAndNans) {
  Rng rng(7);
  const double special[] = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()};
  for (const char* spec : kSpecs) {
    if (std::string(spec).find_first_of("ABCD") == std::string::npos || spec == std::string("a,b,A->"))
      continue;
    for (int repetition = 0; repetition < 10; ++repetition) {
      SCOPED_TRACE(std::string(spec) + ", repetition " + std::to_string(repetition));
      const std::vector<std::int64_t> extents{1 + rng.below(20), 1 + rng.below(20), 1 + rng.below(20), 2, 2};
      Sample sample = sample_of(rng, spec, DType::f64, extents);
      for (Tensor& operand : sample.operands)
        for (std::int64_t i = 0; is_floating(operand.dtype()) && i < operand.element_count(); ++i)
          if (rng.chance(0.03)) operand.set(i, special[rng.below(3)]);
      const Program program = one_node_program(find_op("einsum"), sample);
      const Tensor expected = evaluate(program, sample.operands)[0];
      const Tensor found = find_backend("jit").compile(program, {.threads = 2})->run(sample.operands)[0];
      for (std::int64_t i = 0; i < expected.element_count(); ++i) {
        if (std::isfinite(expected.at(i))) ASSERT_NEAR(found.at(i), expected.at(i), 1e-12) << i;
        else
          ASSERT_TRUE(std::isnan(expected.at(i)) ? std::isnan(found.at(i)) : found.at(i) == expected.at(i))
              << i << ": " << found.at(i) << " instead of " << expected.at(i);
      }
    }
  }
}

/// a b, or a times the transpose of b, by plain loops in double precision.
template <class T>
Tensor plain_product(const Tensor& a, const Tensor& b, bool transpose_b) {
  const auto m = static_cast<std::size_t>(a.shape()[0]), k = static_cast<std::size_t>(a.shape()[1]);
  const auto n = static_cast<std::size_t>(b.shape()[transpose_b ? 0 : 1]);
  Tensor c(TensorType{a.dtype(), {a.shape()[0], b.shape()[transpose_b ? 0 : 1]}});
  const auto a_elements = a.elements<T>(), b_elements = b.elements<T>();
  const auto c_elements = c.elements<T>();
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l)
        sum += static_cast<double>(a_elements[i * k + l]) *
               static_cast<double>(b_elements[transpose_b ? j * k + l : l * n + j]);
      c_elements[i * n + j] = static_cast<T>(sum);
    }
  return c;
}

TEST_P(Contraction, LargeProductsAgree) {
  Rng rng(6);
  const std::int64_t sizes[][3] = {{130, 1030, 70}, {129, 515, 300}, {64, 96, 257},
                                   {300, 33, 513},  {7, 700, 256},   {260, 6, 600}};
  for (const auto& [m, n, k] : sizes)
    for (DType dtype : {DType::f32, DType::f64})
      for (bool transpose_b : {false, true}) {
        SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k));
        Sample sample{{random_tensor(rng, dtype, {m, k}),
                       random_tensor(rng, dtype, transpose_b ? Shape{n, k} : Shape{k, n})},
                      {{"spec", std::string(transpose_b ? "ab,cb->ac" : "ab,bc->ac")}}};
        const Program program = one_node_program(find_op("einsum"), sample);
        const Tensor& a = sample.operands[0];
        const Tensor& b = sample.operands[1];
        const Tensor expected = dtype == DType::f32 ? plain_product<float>(a, b, transpose_b)
                                                    : plain_product<double>(a, b, transpose_b);
        const auto results =
            run_guarded(*find_backend("jit").compile(program, {.threads = 1}), sample.operands);
        expect_agreement(results, {expected}, 1e-14, 1e-5);
        EXPECT_TRUE(run_guarded(*find_backend("jit").compile(program, {.threads = 2}), sample.operands) ==
                    results);
      }
}

}  // namespace
}  // namespace loipe
