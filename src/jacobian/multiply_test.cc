// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "jacobian/arithmetic.h"
#include "jacobian/rules.h"

namespace loipe {
namespace {

/// A program of one argument v of shape `shape` to take values from.
struct Fixture {
  Builder builder;
  Recorder recorder{builder};
  Value argument(const std::string& name, Shape shape) {
    return builder.argument(name, {DType::f64, std::move(shape)});
  }
  std::size_t size() const { return builder.program().size(); }
};

LocalJacobian identity(Builder& builder, const Shape& shape) {
  TermDraft draft;
  const std::vector<Label> labels = draft.labels(shape);
  return draft.out(labels).in(labels).finish(builder);
}

/// d(A X)/dX for A (m,k), X (k,n).
LocalJacobian left_product(Builder& builder, Value a, std::int64_t n) {
  TermDraft draft;
  const Label i = draft.label(builder.shape(a)[0]), k = draft.label(builder.shape(a)[1]), j = draft.label(n);
  return draft.out({i, j}).in({k, j}).value(a, {i, k}).finish(builder);
}

TEST(Multiply, IdentityChangesNothingAndRecordsNothing) {
  Fixture f;
  const Value a = f.argument("A", {2, 3});
  const LocalJacobian left = left_product(f.builder, a, 4);
  const std::size_t before = f.size();
  const LocalJacobian product =
      multiply(f.recorder, identity(f.builder, {2, 4}), left, {{2, 4}, {2, 4}, {3, 4}});
  EXPECT_EQ(to_string(product), to_string(left));
  EXPECT_EQ(f.size(), before);
  EXPECT_EQ(f.recorder.cost(), ActualCost{});
}

TEST(Multiply, KroneckerStructureIsKept) {
  // d(A B X)/dX: the value is A B (2x3 times 3x5), tied over the 4 columns of X.
  Fixture f;
  const LocalJacobian outer = left_product(f.builder, f.argument("A", {2, 3}), 4);
  const LocalJacobian inner = left_product(f.builder, f.argument("B", {3, 5}), 4);
  const LocalJacobian product = multiply(f.recorder, outer, inner, {{2, 4}, {3, 4}, {5, 4}});
  ASSERT_EQ(product.terms.size(), 1u);
  EXPECT_EQ(product.terms[0].stored_elements(), 10);
  EXPECT_EQ(f.recorder.cost(), (ActualCost{30, 20}));
}

TEST(Multiply, ASumThatOnlyOneValueNeedsComesFirst) {
  // d(sum of all entries of A X)/dX: the column sums of A, no multiplication at all.
  Fixture f;
  TermDraft draft;
  draft.in(draft.labels({2, 4}));
  const LocalJacobian sum = draft.finish(f.builder);
  const LocalJacobian left = left_product(f.builder, f.argument("A", {2, 3}), 4);
  const LocalJacobian product = multiply(f.recorder, sum, left, {{}, {2, 4}, {3, 4}});
  EXPECT_EQ(f.recorder.cost(), (ActualCost{0, 3}));
  EXPECT_EQ(product.terms[0].stored_elements(), 3);
}

TEST(Multiply, LabelsThatVanishAreAFactor) {
  // sum(broadcast(s)) over 5 entries: the derivative by s is 5.
  Fixture f;
  TermDraft sum, spread;
  sum.in(sum.labels({5}));
  spread.out(spread.labels({5}));
  const LocalJacobian product =
      multiply(f.recorder, sum.finish(f.builder), spread.finish(f.builder), {{}, {5}, {}});
  ASSERT_EQ(product.terms.size(), 1u);
  EXPECT_EQ(product.terms[0].coefficient, 5);
}

/// x[start : start + count*stride : stride] of n entries.
LocalJacobian slice(Builder& builder, std::int64_t start, std::int64_t stride, std::int64_t count) {
  TermDraft draft;
  const Label label = draft.label(count);
  return draft.out({label}).in_axis(Coordinate::of(label, stride, start)).finish(builder);
}

/// Entries written into a longer axis.
LocalJacobian pad(Builder& builder, std::int64_t start, std::int64_t stride, std::int64_t count) {
  TermDraft draft;
  const Label label = draft.label(count);
  return draft.out_axis(Coordinate::of(label, stride, start)).in({label}).finish(builder);
}

TEST(Multiply, WindowsIntersect) {
  Fixture f;
  // Positions 1,3,5,7,... read from positions 0,3,6,9 written: 3 and 9 meet.
  const LocalJacobian product =
      multiply(f.recorder, slice(f.builder, 1, 2, 6), pad(f.builder, 0, 3, 4), {{6}, {12}, {4}});
  ASSERT_EQ(product.terms.size(), 1u);
  EXPECT_EQ(to_string(product.terms[0]), "(3*a+1 | 2*a+1) a<2 : 1.0");
  EXPECT_EQ(f.size(), 0u);
}

TEST(Multiply, WindowsThatDoNotMeetGiveNoEdge) {
  Fixture f;
  EXPECT_TRUE(
      multiply(f.recorder, slice(f.builder, 0, 2, 3), pad(f.builder, 1, 2, 3), {{3}, {6}, {3}}).is_zero());
  EXPECT_TRUE(
      multiply(f.recorder, slice(f.builder, 0, 1, 2), pad(f.builder, 3, 1, 2), {{2}, {6}, {2}}).is_zero());
}

TEST(Multiply, ReshapesWithACommonRefinementStayAffine) {
  // (6,4) -> (24) -> (2,12): 2x3 and 3x4 digits refine to a (2,3,4) grid.
  Fixture f;
  TermDraft flatten, split;
  const Label i = flatten.label(6), j = flatten.label(4);
  Coordinate list = Coordinate::of(i, 4);
  add_affine(list, Coordinate::of(j), 1);
  const LocalJacobian pre = flatten.out_axis(list).in({i, j}).finish(f.builder);
  const Label a = split.label(2), b = split.label(12);
  Coordinate other = Coordinate::of(a, 12);
  add_affine(other, Coordinate::of(b), 1);
  const LocalJacobian post = split.out({a, b}).in_axis(other).finish(f.builder);
  const LocalJacobian product = multiply(f.recorder, post, pre, {{2, 12}, {24}, {6, 4}});
  ASSERT_EQ(product.terms.size(), 1u);
  for (const auto* axes : {&product.terms[0].out, &product.terms[0].in})
    for (const Coordinate& coordinate : *axes) EXPECT_TRUE(coordinate.is_affine()) << to_string(product);
}

TEST(Multiply, AMaskedInfinityNeverMeetsAZero) {
  // sum over b of A[a,b] * B[b], where the mask hides an infinite B entry.
  Fixture f;
  const Value a = f.argument("A", {2, 2}), b = f.argument("B", {2}),
              mask = f.builder.argument("m", {DType::boolean, {2, 2}});
  TermDraft outer, inner;
  const Label i = outer.label(2), k = outer.label(2);
  const LocalJacobian post = outer.out({i}).in({k}).value(a, {i, k}).mask(mask, {i, k}).finish(f.builder);
  const Label c = inner.label(2);
  const LocalJacobian pre = inner.out({c}).value(b, {c}).finish(f.builder);
  const LocalJacobian product = multiply(f.recorder, post, pre, {{2}, {2}, {}});
  const Value dense = materialize(f.recorder, product, {2}, {}, DType::f64);
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor result =
      evaluate(f.builder.finish({dense}),
               std::vector<Tensor>{Tensor::of<double>({2, 2}, {0.0, 2.0, 3.0, 4.0}),
                                   Tensor::of<double>({2}, {inf, 5.0}),
                                   Tensor::of<bool>({2, 2}, {false, true, false, true})})[0];
  EXPECT_EQ(result.at(0), 10);
  EXPECT_EQ(result.at(1), 20);
}

/// y = L x for the lower triangle of ones: never stored, multiplied by running sums.
class RunningSum : public ImplicitJacobian {
 public:
  RunningSum(std::int64_t n, bool vjp, bool jvp) : n_(n), vjp_(vjp), jvp_(jvp) {}
  DType dtype() const override { return DType::f64; }
  bool has_vjp() const override { return vjp_; }
  bool has_jvp() const override { return jvp_; }
  Value vjp(Builder& b, Value cotangents) const override { return times(b, cotangents, "ka,ab->kb"); }
  Value jvp(Builder& b, Value tangents) const override { return times(b, tangents, "kb,ab->ka"); }
  std::int64_t multiplications() const override { return 0; }

 private:
  Value times(Builder& b, Value directions, const std::string& spec) const {
    Tensor lower(TensorType{DType::f64, {n_, n_}});
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j <= i; ++j) lower.set(i * n_ + j, 1);
    return b.emit("einsum", {directions, b.constant(lower)}, {{"spec", spec}});
  }
  std::int64_t n_;
  bool vjp_, jvp_;
};

class ImplicitProducts : public ::testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(ImplicitProducts, MultiplyInTheDirectionsThatExist) {
  const auto [vjp, jvp] = GetParam();
  Fixture f;
  LocalJacobian running;
  running.implicit = std::make_shared<RunningSum>(3, vjp, jvp);
  TermDraft draft;
  const Label a = draft.label(2), b = draft.label(3);
  const LocalJacobian post = draft.out({a}).in({b}).value(f.argument("P", {2, 3}), {a, b}).finish(f.builder);
  const LocalJacobian chain =
      multiply(f.recorder, post, multiply(f.recorder, running, running, {{3}, {3}, {3}}), {{2}, {3}, {3}});
  const Value results[] = {materialize(f.recorder, chain, {2}, {3}, DType::f64),
                           materialize(f.recorder, running, {3}, {3}, DType::f64)};
  const std::vector<Tensor> dense =
      evaluate(f.builder.finish({std::begin(results), std::end(results)}),
               std::vector<Tensor>{Tensor::of<double>({2, 3}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0})});
  // L L = {{1,0,0},{2,1,0},{3,2,1}}.
  EXPECT_EQ(dense[0], Tensor::of<double>({2, 3}, {14.0, 8.0, 3.0, 32.0, 17.0, 6.0}));
  EXPECT_EQ(dense[1], Tensor::of<double>({3, 3}, {1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0}));
}

INSTANTIATE_TEST_SUITE_P(Directions, ImplicitProducts,
                         ::testing::Values(std::pair{true, true}, std::pair{true, false},
                                           std::pair{false, true}));

}  // namespace
}  // namespace loipe
