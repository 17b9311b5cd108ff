// SPDX-License-Identifier: Apache-2.0
// A user-defined op: the value is any C++ (here Newton's method for Kepler's equation
// E - e sin(E) = M), the derivative a traced function. By the implicit function theorem
// dE/dM = 1/(1 - e cos E) and dE/de = sin E / (1 - e cos E), so the iteration itself is never
// differentiated. The derivative is traced, so it has derivatives too.
#include <loipe/loipe.h>

#include <cmath>
#include <cstdio>

namespace {

loipe::Tensor solve_kepler(std::span<const loipe::Tensor* const> operands) {
  loipe::Tensor anomaly(operands[0]->type());
  for (std::int64_t i = 0; i < anomaly.element_count(); ++i) {
    const double m = operands[0]->at(i), e = operands[1]->at(i);
    double x = m;
    for (int step = 0; step < 20; ++step) x -= (x - e * std::sin(x) - m) / (1 - e * std::cos(x));
    anomaly.set(i, x);
  }
  return anomaly;
}

const loipe::CustomOp kepler({.name = "kepler",
                              .operand_count = 2,
                              .type = [](std::span<const loipe::TensorType> types) { return types[0]; },
                              .evaluate = solve_kepler,
                              // v: mean anomaly, eccentricity, and the result
                              .partials =
                                  [](std::span<const loipe::Traced> v) {
                                    const auto rate = 1 / (1 - v[1] * cos(v[2]));
                                    return std::vector<loipe::Traced>{rate, sin(v[2]) * rate};
                                  }});

}  // namespace

int main() {
  using loipe::DType;
  const auto radius = [](auto m, auto e) { return 1 - e * loipe::cos(kepler(m, e)); };
  const auto J = loipe::jacobian(radius, {{"m", {DType::f64, {2}}}, {"e", {DType::f64, {2}}}});
  const auto result =
      J({loipe::Tensor::of<double>({2}, {0.5, 1.0}), loipe::Tensor::of<double>({2}, {0.1, 0.3})});
  for (int i = 0; i < 2; ++i)
    std::printf("r = %.6f  dr/dm = %.6f  dr/de = %.6f\n", result.outputs[0].at(i),
                result.blocks[0][0].at(3 * i), result.blocks[0][1].at(3 * i));
}
