// SPDX-License-Identifier: Apache-2.0
// Positions outside an axis: gather reads 0 there and scatter drops, so nothing depends on them; whether
// the index is a constant or an argument, in every order, dense and sparse.
#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <functional>

namespace loipe {
namespace {

using Function = std::function<Traced(const Traced& x, const Traced& u, const Traced& index)>;

const std::pair<const char*, Function> kFunctions[] = {
    {"gather", [](auto x, auto, auto i) { return square(take(x, i)); }},
    {"gather of scatter", [](auto x, auto u, auto i) { return take(scatter_add(x, i, square(u)), i); }},
    {"function of scatter", [](auto x, auto u, auto i) { return exp(scatter_add(x, i, square(u))); }},
    {"gather of broadcast", [](auto x, auto u, auto i) { return take(broadcast_to(sum(u), x.shape()), i); }},
};

struct Case {
  Function f;
  Tensor x, u, index;
  bool is_constant;

  Jacobian compiled(const char* order, BlockFormat format) const {
    const auto traced = [this](auto a, auto b, auto i) { return f(a, b, is_constant ? constant(index) : i); };
    return jacobian(traced, {{"x", x.type()}, {"u", u.type()}, {"i", index.type()}},
                    {.order = order, .format = format});
  }
};

Tensor from_entries(const SparsePattern& pattern, const Tensor& values, const Tensor& like) {
  Tensor dense(like.type());
  for (std::size_t e = 0; e < pattern.rows.size(); ++e) {
    EXPECT_TRUE(pattern.rows[e] >= 0 && pattern.rows[e] < pattern.row_count);
    EXPECT_TRUE(pattern.columns[e] >= 0 && pattern.columns[e] < pattern.column_count);
    dense.set(pattern.rows[e] * pattern.column_count + pattern.columns[e],
              values.at(static_cast<std::int64_t>(e)));
  }
  return dense;
}

void expect_differences(const Case& c, const Jacobian& J, const Tensor& block, std::size_t by) {
  constexpr double h = 1e-6;
  std::vector<Tensor> at{c.x, c.u, c.index};
  const std::int64_t columns = at[by].element_count();
  for (std::int64_t column = 0; column < columns; ++column) {
    const double entry = at[by].at(column);
    at[by].set(column, entry + h);
    const Tensor after = J(at).outputs[0];
    at[by].set(column, entry - h);
    const Tensor before = J(at).outputs[0];
    at[by].set(column, entry);
    for (std::int64_t row = 0; row < after.element_count(); ++row)
      EXPECT_NEAR(block.at(row * columns + column), (after.at(row) - before.at(row)) / (2 * h), 1e-6)
          << "row " << row << ", column " << column;
  }
}

TEST(IndexOutside, HasNoDerivative) {
  for (const auto& [name, f] : kFunctions)
    for (std::int64_t extent : {0, 1, 3})
      for (std::int64_t first : {-2, 0, 1, 5})
        for (std::int64_t second : {-1, 0, 2})
          for (bool is_constant : {false, true})
            for (const char* order : {"forward", "reverse", "markowitz"}) {
              SCOPED_TRACE(std::string(name) + ", extent " + std::to_string(extent) + ", index " +
                           std::to_string(first) + " " + std::to_string(second) + ", " + order +
                           (is_constant ? ", constant" : ""));
              Case c{f, Tensor(TensorType{DType::f64, {extent}}), Tensor::of<double>({2}, {0.7, -0.4}),
                     Tensor::of<std::int64_t>({2}, {first, second}), is_constant};
              for (std::int64_t i = 0; i < extent; ++i) c.x.set(i, 0.3 + 0.2 * static_cast<double>(i));
              const Jacobian dense = c.compiled(order, BlockFormat::dense);
              const Jacobian sparse = c.compiled(order, BlockFormat::coo);
              const JacobianResult all = dense({c.x, c.u, c.index}), entries = sparse({c.x, c.u, c.index});
              for (std::size_t by : {0U, 1U}) {
                expect_differences(c, dense, all.blocks[0][by], by);
                EXPECT_EQ(from_entries(sparse.block_pattern(0, by), entries.blocks[0][by], all.blocks[0][by]),
                          all.blocks[0][by]);
              }
              if (HasFailure()) return;
            }
}

}  // namespace
}  // namespace loipe
