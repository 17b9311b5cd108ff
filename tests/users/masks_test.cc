// SPDX-License-Identifier: Apache-2.0
// What a mask hides stays hidden behind sums, implicit ops, added terms and products with directions.
#include "every_way.h"

namespace loipe::testing {
namespace {

using Arguments = std::span<const Traced>;
using Scan = Traced (*)(const Traced&);

Tensor row(std::initializer_list<double> entries) {
  return Tensor::of<double>({static_cast<std::int64_t>(entries.size())},
                            std::span<const double>(entries.begin(), entries.size()));
}

void expect_finite_with_zero_column(const Derivatives& d, std::int64_t columns, std::int64_t column) {
  for (std::int64_t i = 0; i < d.by[0].element_count(); ++i) {
    EXPECT_TRUE(std::isfinite(d.by[0].at(i))) << "entry " << i;
    if (i % columns == column) {
      EXPECT_EQ(d.by[0].at(i), 0) << "entry " << i;
    }
  }
}

TEST(Masks, ImplicitOpsKeepThem) {
  const Scan scans[] = {[](const Traced& x) { return cumsum(x); }, [](const Traced& x) { return cumprod(x); },
                        [](const Traced& x) { return sort(x); }, [](const Traced& x) { return softmax(x); },
                        [](const Traced& x) { return layer_norm(x, 1e-5); }};
  for (const Scan& scan : scans)
    check_in_every_way([&](Arguments x) { return scan(select(x[0] > 0, log(x[0]), 0.0)); }, {row({0, 1, 2})},
                       [](const Derivatives& d) { expect_finite_with_zero_column(d, 3, 0); });
}

TEST(Masks, SumsOfHiddenTermsAreNoEntries) {
  const Tensor x = Tensor::of<double>({2, 3}, {0, 1, 2, 3, 4, 5});
  const Tensor hides_row_0 = Tensor::of<bool>({2, 3}, {false, false, false, true, true, true});
  const Tensor w = Tensor::of<double>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 10});
  check_in_every_way(
      [&](Arguments v) {
        return sum(square(select(constant(hides_row_0), matmul(log(v[0]), constant(w)), 0.0)));
      },
      {x},
      [](const Derivatives& d) {
        for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(d.by[0].at(i), 0);
        for (std::int64_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isfinite(d.by[0].at(i)) && d.by[0].at(i) != 0);
      });
}

TEST(Masks, DirectionsMeetThemToo) {
  const Tensor x = row({0, 1, 2}), v = row({1, 2, 3}), zero = row({0, 0, 0});
  const auto functions =
      std::tuple([](auto t) { return softmax(log(t)); }, [](auto t) { return logsumexp(log(t)); },
                 [](auto t) { return sum(relu(log(t)) * t); });
  const auto check = [&](const auto& f) {
    const Argument arguments[] = {{"x", x.type()}};
    for (const char* order : {"forward", "reverse", "markowitz", "random:1"})
      for (const char* backend : {"reference", "jit"}) {
        const DerivativeOptions options{.order = order, .backend = backend};
        const Tensor block = jacobian(f, arguments, options)({x}).blocks[0][0];
        const Derivative J = jvp(f, arguments, options);
        const Tensor along = J({x}, {v}).derivatives[0], none = J({x}, {zero}).derivatives[0];
        for (std::int64_t i = 0; i < along.element_count(); ++i) {
          double expected = 0;
          for (std::int64_t k = 0; k < 3; ++k) expected += block.at(3 * i + k) * v.at(k);
          EXPECT_NEAR(along.at(i), expected, 1e-14) << order << ", " << backend;
          EXPECT_EQ(none.at(i), 0) << order << ", " << backend;
        }
      }
  };
  std::apply([&](const auto&... f) { (check(f), ...); }, functions);
}

}  // namespace
}  // namespace loipe::testing
