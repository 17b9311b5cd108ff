// SPDX-License-Identifier: Apache-2.0
// Polynomial attention against files that NumPy wrote in float64 by its definition: four kept here, all of
// them where the reference data are at hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "attention/almost_linear_case.h"
#include "tensor/safetensors.h"

namespace loipe::attention::almost_linear::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const char* folder : {"/tests/data/attention", "/../shared/data/attention"})
    if (const fs::path path = LOIPE_SOURCE_DIR + std::string(folder); fs::exists(path))
      for (const fs::directory_entry& entry : fs::directory_iterator(path))
        if (const std::string stem = entry.path().stem(); stem.starts_with("poly_"))
          files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Rows<const double> rows_of(const Tensor& t) {
  return contiguous(t.elements<double>().data(), t.shape()[1], t.shape()[2]);
}

double deviation(const std::vector<double>& got, const Tensor& expected) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = expected.elements<double>()[i];
    worst = std::max(worst, std::abs(got[i] - e)), largest = std::max(largest, std::abs(e));
  }
  return worst / largest;
}

class GoldenPolynomialAttention : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPolynomialAttention, OutputsAndGradients) {
  const SafetensorsFile file = SafetensorsFile::read(GetParam());
  const Tensor q = file.tensor("Q"), k = file.tensor("K"), v = file.tensor("V"), g = file.tensor("G"),
               coefficients = file.tensor("coef");
  const Shape shape{q.shape()[0], k.shape()[0], q.shape()[1], k.shape()[1], q.shape()[2], v.shape()[2]};
  Problem<double> p{shape, std::stod(file.metadata().at("scale")), {}, rows_of(q), rows_of(k), rows_of(v)};
  p.mask.is_causal = GetParam().ends_with("_causal.safetensors");
  Approximation a;
  a.degree = static_cast<int>(coefficients.element_count()) - 1;
  a.is_centred = false;
  std::vector<double> of_heads;
  for (std::int64_t h = 0; h < shape.kv_heads; ++h)
    of_heads.insert(of_heads.end(), coefficients.elements<double>().begin(),
                    coefficients.elements<double>().end());
  a.coefficients = of_heads.data();

  const auto array = [](const Tensor& like) {
    return std::vector<double>(static_cast<std::size_t>(like.element_count()));
  };
  std::vector<double> o = array(g), denominator(static_cast<std::size_t>(shape.heads * shape.queries)),
                      dq = array(q), dk = array(k), dv = array(v);
  const Rows<double> o_rows = contiguous(o.data(), shape.queries, shape.value_size),
                     denominators = contiguous(denominator.data(), shape.queries, 1);
  Workspace forward_memory(forward_workspace(p, a, 1)), vjp_memory(vjp_workspace(p, a, 1));
  forward<double>(p, a, {o_rows, {}, denominators, nullptr}, {}, forward_memory.bytes());
  vjp<double>(p, a, {o_rows, denominators}, {rows_of(g), {}},
              {contiguous(dq.data(), shape.queries, shape.head_size),
               contiguous(dk.data(), shape.keys, shape.head_size),
               contiguous(dv.data(), shape.keys, shape.value_size),
               {}},
              {}, vjp_memory.bytes());
  EXPECT_LT(deviation(o, file.tensor("O")), 1e-9);
  EXPECT_LT(deviation(dq, file.tensor("dQ")), 1e-9);
  EXPECT_LT(deviation(dk, file.tensor("dK")), 1e-9);
  EXPECT_LT(deviation(dv, file.tensor("dV")), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenPolynomialAttention, ::testing::ValuesIn(golden_files()),
                         [](const auto& parameter) {
                           std::string name = fs::path(parameter.param).stem();
                           std::ranges::replace(name, '.', '_');
                           return name + "_" + std::to_string(parameter.index);
                         });

}  // namespace
}  // namespace loipe::attention::almost_linear::testing
