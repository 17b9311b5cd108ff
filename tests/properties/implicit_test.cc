// SPDX-License-Identifier: Apache-2.0
// Implicit Jacobians multiply like the terms that they stand for, whatever is tied.
#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "jacobian/arithmetic.h"
#include "jacobian/rules.h"
#include "support/dense_jacobian.h"
#include "support/random_term.h"

namespace loipe {
namespace {

using testing::RandomTerms;
using testing::relative_deviation;

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string names(char first, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += static_cast<char>(first + static_cast<char>(i));
  return text;
}

/// The entries M[t, o, i] of d(t, o)/d(t, i), known by einsums with M only.
class TiedMatrix : public ImplicitJacobian {
 public:
  TiedMatrix(Value entries, std::size_t tied, std::size_t out, std::size_t in, bool vjp, bool jvp)
      : entries_(entries),
        tied_(tied),
        t_(names('a', tied)),
        o_(names('k', out)),
        i_(names('p', in)),
        vjp_(vjp),
        jvp_(jvp) {}

  DType dtype() const override { return DType::f64; }
  bool has_vjp() const override { return vjp_; }
  bool has_jvp() const override { return jvp_; }
  std::size_t tied_axes() const override { return tied_; }
  Value vjp(Builder& b, Value cotangents) const override { return apply(b, cotangents, o_, i_); }
  Value jvp(Builder& b, Value tangents) const override { return apply(b, tangents, i_, o_); }
  std::int64_t multiplications() const override { return 1; }

 private:
  Value apply(Builder& b, Value directions, const std::string& from, const std::string& to) const {
    return b.emit("einsum", {directions, entries_},
                  {{"spec", "z" + t_ + from + "," + t_ + o_ + i_ + "->z" + t_ + to}});
  }
  Value entries_;
  std::size_t tied_;
  std::string t_, o_, i_;
  bool vjp_, jvp_;
};

/// A random matrix with tied axes, as terms and as an implicit Jacobian.
struct RandomTied {
  Shape tied, out, in;
  LocalJacobian terms, implicit;

  RandomTied(RandomTerms& random, Value entries, Shape t, Shape o, Shape i, bool vjp, bool jvp)
      : tied(std::move(t)), out(std::move(o)), in(std::move(i)) {
    TermDraft draft;
    const std::vector<Label> a = draft.labels(tied), k = draft.labels(out), p = draft.labels(in);
    draft.out(a).out(k).in(a).in(p);
    std::vector<Label> axes = a;
    axes.insert(axes.end(), k.begin(), k.end());
    axes.insert(axes.end(), p.begin(), p.end());
    terms = draft.value(entries, axes).finish(random.builder());
    implicit.implicit = std::make_shared<TiedMatrix>(entries, tied.size(), out.size(), in.size(), vjp, jvp);
  }
  Shape out_shape() const { return joined(tied, out); }
  Shape in_shape() const { return joined(tied, in); }
};

LocalJacobian random_list(RandomTerms& random, Recorder& recorder, const Shape& out, const Shape& in) {
  LocalJacobian sum;
  for (std::int64_t i = random.rng().between(1, 3); i > 0; --i)
    for (const Term& term : random.term(out, in).terms) add(recorder, sum, term, out, in);
  return sum;
}

class ImplicitLaw : public ::testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(ImplicitLaw, ProductsAreThoseOfTheTerms) {
  const auto [vjp, jvp] = GetParam();
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTerms random(seed);
    Recorder recorder(random.builder());
    const auto few = [&] {
      Shape shape = random.shape();
      while (shape.size() > 2) shape.pop_back();
      return shape;
    };
    Shape tied = few(), out = few(), in = few();
    Tensor entries(TensorType{DType::f64, joined(joined(tied, out), in)});
    for (std::int64_t e = 0; e < entries.element_count(); ++e) entries.set(e, random.rng().uniform(-1, 1));
    const RandomTied matrix(random, random.builder().constant(std::move(entries)), tied, out, in, vjp, jvp);
    const Shape left = random.shape(), right = random.shape();
    const LocalJacobian post = random_list(random, recorder, left, matrix.out_shape());
    const LocalJacobian pre = random_list(random, recorder, matrix.in_shape(), right);
    std::vector<Value> results;
    for (const LocalJacobian* form : {&matrix.terms, &matrix.implicit}) {
      const LocalJacobian by_left =
          multiply(recorder, post, *form, {left, matrix.out_shape(), matrix.in_shape()});
      const LocalJacobian by_right =
          multiply(recorder, *form, pre, {matrix.out_shape(), matrix.in_shape(), right});
      results.push_back(materialize(recorder, by_left, left, matrix.in_shape(), DType::f64));
      results.push_back(materialize(recorder, by_right, matrix.out_shape(), right, DType::f64));
      results.push_back(materialize(recorder, *form, matrix.out_shape(), matrix.in_shape(), DType::f64));
    }
    const std::vector<Tensor> dense = evaluate(random.builder().finish(results), random.arguments());
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_LT(relative_deviation(dense[3 + i], dense[i], 1.0), 1e-12)
          << i << " " << to_string(post) << "\nand\n"
          << to_string(pre) << "\ntied " << to_string(tied);
  }
}

INSTANTIATE_TEST_SUITE_P(Directions, ImplicitLaw,
                         ::testing::Values(std::pair{true, true}, std::pair{true, false},
                                           std::pair{false, true}));

TEST(Implicit, ExamplesOfABatchDoNotMix) {
  // d(8,3)/d(8,4) tied along 8, after an elementwise op and before a product with a matrix.
  RandomTerms random(7);
  Builder& b = random.builder();
  Recorder recorder(b);
  const Value m = b.argument("M", {DType::f64, {8, 3, 4}}), d = b.argument("d", {DType::f64, {8, 3}}),
              w = b.argument("W", {DType::f64, {4, 2}});
  const RandomTied matrix(random, m, {8}, {3}, {4}, true, true);
  TermDraft diagonal, product;
  const Label i = diagonal.label(8), j = diagonal.label(3);
  const LocalJacobian post = diagonal.out({i, j}).in({i, j}).value(d, {i, j}).finish(b);
  const Label a = product.label(8), k = product.label(4), c = product.label(2);
  const LocalJacobian pre = product.out({a, k}).in({a, c}).value(w, {k, c}).finish(b);

  const LocalJacobian left = multiply(recorder, post, matrix.implicit, {{8, 3}, {8, 3}, {8, 4}});
  EXPECT_EQ(to_string(left.terms.at(0)).substr(0, 13), "(a, b | a, c)");
  EXPECT_EQ(left.terms[0].stored_elements(), 8 * 3 * 4);
  const LocalJacobian right = multiply(recorder, matrix.implicit, pre, {{8, 3}, {8, 4}, {8, 2}});
  EXPECT_EQ(to_string(right.terms.at(0)).substr(0, 13), "(a, b | a, c)");
  EXPECT_EQ(right.terms[0].stored_elements(), 8 * 3 * 2);
  const LocalJacobian alone = explicit_terms(recorder, matrix.implicit, {8, 3}, {8, 4}, DType::f64);
  EXPECT_EQ(alone.terms.at(0).stored_elements(), 8 * 3 * 4);
  EXPECT_EQ(recorder.cost().multiplications, 3 + 2 + 3);
}

}  // namespace
}  // namespace loipe
