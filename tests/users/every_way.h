// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "driver/pipeline.h"
#include "frontends/trace.h"
#include "orders/order.h"

// What users ask of a derivative, tried in every way to get it.

namespace loipe::testing {

/// The value of output 0 and its derivatives by all floating arguments.
struct Derivatives {
  Tensor value;
  std::vector<Tensor> by;
};

using CheckDerivatives = std::function<void(const Derivatives&)>;

inline std::vector<EliminationOrder> some_orders(const Program& program) {
  std::vector<EliminationOrder> orders{forward_order(program), reverse_order(program),
                                       markowitz_order(program)};
  for (const std::uint64_t seed : {1U, 2U, 3U}) orders.push_back(random_order(program, seed));
  return orders;
}

/// A function of tensors traced on arguments of these types.
template <class Function>
Program traced(const Function& function, const std::vector<Tensor>& arguments) {
  std::vector<Argument> list;
  for (const Tensor& argument : arguments)
    list.push_back({"x" + std::to_string(list.size()), argument.type()});
  return trace("main", list, [&](std::span<const Traced> x) { return std::vector<Traced>{function(x)}; });
}

/// Checks a program's value and Jacobian in forward, reverse, Markowitz and three random orders,
/// by the interpreter and compiled.
inline void check_program_in_every_way(const Program& program, const std::vector<Tensor>& arguments,
                                       const CheckDerivatives& check) {
  for (const EliminationOrder& order : some_orders(program))
    for (const char* backend : {"reference", "jit"}) {
      SCOPED_TRACE(order.name + ", " + backend);
      CompileOptions options{.request = {floating_arguments(program), order, {}}, .backend = backend};
      options.passes.verify_each = true;
      std::vector<Tensor> results = compile(program, options).executable->run(arguments);
      Derivatives derivatives{results[0], {}};
      derivatives.by.assign(results.begin() + 1, results.end());
      check(derivatives);
      if (::testing::Test::HasFailure()) return;
    }
}

template <class Function>
void check_in_every_way(const Function& function, const std::vector<Tensor>& arguments,
                        const CheckDerivatives& check) {
  check_program_in_every_way(traced(function, arguments), arguments, check);
}

/// The same for the derivative by argument `by` as the value: second derivatives, in every order
/// of both.
template <class Function>
void check_second_in_every_way(const Function& function, const std::vector<Tensor>& arguments, std::size_t by,
                               const CheckDerivatives& check) {
  const Program program = traced(function, arguments);
  for (const EliminationOrder& order : {forward_order(program), reverse_order(program)}) {
    SCOPED_TRACE("first derivative " + order.name);
    Program first = accumulate(program, {{by}, order, {}}).program;
    first.set_outputs({first.outputs()[1]});
    check_program_in_every_way(first, arguments, check);
  }
}

inline std::vector<double> entries(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.at(i));
  return result;
}

/// Equal up to a relative and absolute tolerance; infinities and 0 tolerance: equal.
inline void expect_entries(const Tensor& tensor, const std::vector<double>& expected,
                           double tolerance = 1e-7) {
  ASSERT_EQ(tensor.element_count(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double actual = tensor.at(static_cast<std::int64_t>(i));
    if (std::isinf(expected[i]) || tolerance == 0) EXPECT_EQ(actual, expected[i]) << "entry " << i;
    else EXPECT_NEAR(actual, expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "entry " << i;
  }
}

inline Tensor vector_of(std::initializer_list<double> numbers) {
  return Tensor::of<double>({static_cast<std::int64_t>(numbers.size())}, numbers);
}
inline Tensor floats_of(std::initializer_list<float> numbers) {
  return Tensor::of<float>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

}  // namespace loipe::testing
