// SPDX-License-Identifier: Apache-2.0
// Jacobian::c_source and Derivative::c_source, compiled and called beside what they came from.
#include <gmock/gmock.h>
#include <loipe/loipe.h>

#include "compiled_sources.h"
#include "ir/parser.h"

namespace loipe {
namespace {

class EmittedDerivatives : public WithCompiler {};
INSTANTIATE_TEST_SUITE_P(Compilers, EmittedDerivatives, ::testing::Values("gcc", "clang-19"), compiler_name);

/// Solves with a random matrix, sorts the solution, scans it: nothing of it has straight-line code.
const auto kRows = [](auto a, auto x) {
  auto square = loipe::matmul(a, loipe::transpose(a));
  auto y = loipe::triangular_solve(loipe::cholesky(square + 3.0), x);
  return loipe::cumsum(loipe::sort(y));
};

TEST_P(EmittedDerivatives, AreThoseThatRun) {
  const TensorType matrix{DType::f64, {3, 3}};
  const Argument arguments[] = {{"a", matrix}, {"x", {DType::f64, {3, 2}}}};
  const Tensor a = Tensor::of<double>({3, 3}, {1, 0.5, 0.2, -0.3, 2, 0.1, 0.7, 0.2, 1.5}),
               x = Tensor::of<double>({3, 2}, {1, -2, 0.5, 0.3, -1, 0.2});
  CompiledSources sources(GetParam());
  std::vector<std::vector<Tensor>> expected;
  const auto add = [&](const auto& derivative, std::vector<Tensor> results) {
    const CSource source = derivative.c_source(sources.names(Program()).function);
    sources.add(program_from_text(derivative.program_text()), {source.header, source.source});
    expected.push_back(std::move(results));
  };
  const auto J = jacobian(kRows, arguments, {.backend = "reference"});
  const JacobianResult blocks = J({a, x});
  add(J, {blocks.outputs[0], blocks.blocks[0][0], blocks.blocks[0][1]});
  const auto sum = [](auto m, auto y) { return loipe::sum(kRows(m, y)); };
  const auto H = hessian(sum, arguments, {.wrt = {"x"}, .backend = "reference"});
  add(H, H({a, x}).derivatives);
  sources.compile();
  for (std::size_t k = 0; k < sources.size(); ++k)
    expect_agreement(sources.run(k, {a, x}), expected[k], 1e-13, 0);
}

TEST(CSource, NamesAreThoseOfFiles) {
  const auto J = jacobian([](auto x, auto y) { return loipe::sin(x) * y; },
                          {{"class", {DType::f32, {3}}}, {"y", {DType::f32, {3}}}});
  const CSource source = J.c_source("f");
  EXPECT_THAT(source.header,
              ::testing::HasSubstr("void f(const float* restrict in_class, const float* restrict "
                                   "in_y, float* restrict out_0, float* restrict jac_0_class, "
                                   "float* restrict jac_0_y, void* restrict work);"));
  EXPECT_THAT(source.header, ::testing::HasSubstr("#define F_jac_0_class_NONZEROS 3"));
  EXPECT_THAT(source.source, ::testing::HasSubstr("#include \"f.h\""));
}

TEST(CSource, MistakesAreToldApart) {
  const auto J = jacobian([](auto x) { return x * x; }, {{"x", {DType::f64, {}}}});
  for (const char* name : {"", "1f", "a-b", "f()"}) EXPECT_THROW(J.c_source(name), UserError) << name;
}

}  // namespace
}  // namespace loipe
