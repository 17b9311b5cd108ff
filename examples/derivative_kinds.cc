// SPDX-License-Identifier: Apache-2.0
// The example of README.md, "Other derivatives".
#include <loipe/loipe.h>

#include <cstdio>

int main() {
  using loipe::DType;
  auto f = [](auto x) {  // Rosenbrock's valley
    auto a = loipe::slice(x, {0}, {1}), b = loipe::slice(x, {1}, {2});
    auto bend = b - a * a, distance = 1.0 - a;
    return loipe::sum(100.0 * bend * bend + distance * distance);
  };
  const loipe::Argument arguments[] = {{"x", {DType::f64, {2}}}};
  auto x = loipe::Tensor::of<double>({2}, {-1.2, 1.0}), v = loipe::Tensor::of<double>({2}, {1.0, 0.0});

  auto g = loipe::value_and_gradient(f, arguments)({x});  // g.derivatives[0]: shape [2]
  auto H = loipe::hessian(f, arguments)({x});             // H.derivatives[0]: shape [2,2]
  auto Hv = loipe::hvp(f, arguments)({x}, {v});           // Hv.derivatives[0]: shape [2]
  auto Jv = loipe::jvp(f, arguments)({x}, {v});           // Jv.derivatives[0]: shape []
  std::printf("%.4f %.4f\n", g.outputs[0].at(0), g.derivatives[0].at(0));
  std::printf("%.4f %.4f %.4f\n", H.derivatives[0].at(0), Hv.derivatives[0].at(0), Jv.derivatives[0].at(0));
}
