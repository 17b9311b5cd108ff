// SPDX-License-Identifier: Apache-2.0
#include "support/shrink.h"

#include <cmath>
#include <set>
#include <tuple>

#include "ir/op_def.h"
#include "support/variant.h"

namespace loipe::testing {

namespace {

bool is_leaf(const Program& program, Value v) {
  return &program.op(v) == &argument_op() || &program.op(v) == &constant_op();
}

/// What shrinking makes smaller, the most important part first.
auto size_of(const Case& c) {
  std::size_t leaves = 0;
  for (std::uint32_t i = 0; i < c.program.size(); ++i) leaves += is_leaf(c.program, Value{i});
  return std::tuple(c.program.size() - leaves, leaves, c.program.outputs().size(), to_string(c).size());
}

class Shrinker {
 public:
  Shrinker(const Case& failing, const Property& property, int most_trials)
      : property_(property), trials_left_(most_trials), best_(failing) {
    violation_ = violation_of(property_, best_);
    values_ = node_values(best_);
  }

  Shrunk run() && {
    const int trials = trials_left_;
    while (!violation_.empty() && trials_left_ > 0 && improve()) {
    }
    return {std::move(best_), std::move(violation_), trials - trials_left_};
  }

 private:
  /// One step down; the strongest changes come first.
  bool improve() {
    return try_outputs() || try_cuts() || try_replacements() || try_extents() || try_numbers();
  }

  bool accept(const Edit& edit) {
    const std::optional<Case> variant = edited(best_, edit, values_);
    if (!variant || size_of(*variant) >= size_of(best_) || trials_left_-- <= 0) return false;
    std::string violation = violation_of(property_, *variant);
    if (violation.empty()) return false;
    best_ = *variant;
    violation_ = std::move(violation);
    values_ = node_values(best_);
    return true;
  }

  bool try_outputs() {
    for (std::uint32_t i = 0; i < program().size(); ++i)
      if (!is_leaf(program(), Value{i}) && accept({.outputs = std::vector{Value{i}}})) return true;
    const std::vector<Value> all(program().outputs().begin(), program().outputs().end());
    for (std::size_t k = 0; k < all.size(); ++k) {
      std::vector<Value> others = all;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
      if (accept({.outputs = others})) return true;
    }
    for (std::size_t k = 0; k < all.size(); ++k)
      for (Value operand : program().operands(all[k])) {
        std::vector<Value> others = all;
        others[k] = operand;
        if (accept({.outputs = others})) return true;
      }
    return false;
  }

  bool try_cuts() {
    if (!values_.are_complete) return false;
    for (auto i = static_cast<std::uint32_t>(program().size()); i-- > 0;)
      if (!is_leaf(program(), Value{i}) && (accept({.cut = {Value{i}}}) || try_cut_out(Value{i})))
        return true;
    return false;
  }

  /// A node between two that matter: what leads to it stays, as outputs of its own.
  bool try_cut_out(Value v) {
    std::vector<Value> outputs(program().outputs().begin(), program().outputs().end());
    for (Value operand : program().operands(v))
      if (!is_leaf(program(), operand)) outputs.push_back(operand);
    return accept({.outputs = outputs, .cut = {v}});
  }

  bool try_replacements() {
    for (auto i = static_cast<std::uint32_t>(program().size()); i-- > 0;)
      for (std::uint32_t k = 0; k < i; ++k)
        if (program().type(Value{k}) == program().type(Value{i}) &&
            accept({.replaced = {{Value{i}, Value{k}}}}))
          return true;
    return false;
  }

  bool try_extents() {
    std::set<std::int64_t> extents;
    for (std::uint32_t i = 0; i < program().size(); ++i)
      for (std::int64_t extent : program().shape(Value{i})) extents.insert(extent);
    for (std::int64_t from : extents)
      for (std::int64_t to : {std::int64_t{1}, std::int64_t{2}, from - 1}) {
        if (to < 1 || to >= from) continue;
        if (accept({.extents = Edit::Extents{from, to, std::nullopt}})) return true;
        for (std::size_t k = 0; k < program().arguments().size(); ++k)
          if (accept({.extents = Edit::Extents{from, to, k}})) return true;
      }
    return false;
  }

  bool try_numbers() {
    for (std::uint32_t i = 0; i < program().size(); ++i)
      if (is_leaf(program(), Value{i}) && try_numbers(Value{i})) return true;
    return false;
  }

  bool try_numbers(Value leaf) {
    const Tensor& tensor = values_.of[leaf.index];
    const auto accept_mapped = [&](auto&& map) {
      Tensor simpler(tensor.type());
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) simpler.set(i, map(i, tensor.at(i)));
      return accept({.tensors = {{leaf, std::move(simpler)}}});
    };
    if (accept_mapped([](std::int64_t, double) { return 0.0; }) ||
        accept_mapped([](std::int64_t, double) { return 1.0; }) ||
        accept_mapped([](std::int64_t, double x) { return std::trunc(x); }) ||
        accept_mapped([](std::int64_t, double x) { return std::round(x * 8) / 8; }))
      return true;
    for (std::int64_t k = 0; k < std::min<std::int64_t>(tensor.element_count(), 64); ++k)
      for (double number : {0.0, 1.0, std::round(tensor.at(k) * 8) / 8})
        if (accept_mapped([&](std::int64_t i, double x) { return i == k ? number : x; })) return true;
    return false;
  }

  const Program& program() const { return best_.program; }

  const Property& property_;
  int trials_left_;
  Case best_;
  std::string violation_;
  NodeValues values_;
};

}  // namespace

Shrunk shrink(const Case& failing, const Property& property, int most_trials) {
  return Shrinker(failing, property, most_trials).run();
}

}  // namespace loipe::testing
