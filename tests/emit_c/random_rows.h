// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "ir/builder.h"
#include "ops/emit.h"

namespace loipe {

/// Draws programs over matrices [rows, n] of ops along rows and on matrices, between movement and
/// elementwise ops: scans, sorts and what they gather, solves, attention, scatters, integers.
/// Magnitudes stay moderate, and what is sorted are arguments, so that rounding swaps no places.
class RandomRows {
 public:
  RandomRows(std::uint64_t seed, DType dtype) : rng_(seed), dtype_(dtype) {
    static constexpr std::int64_t kExtents[] = {1, 2, 3, 5, 7};
    rows_ = kExtents[rng_.below(5)], n_ = kExtents[rng_.below(5)];
    for (int i = 0; i < 3; ++i) {
      Tensor tensor(TensorType{dtype, {rows_, n_}});
      for (std::int64_t e = 0; e < tensor.element_count(); ++e) tensor.set(e, rng_.uniform(-1, 1));
      values_.push_back(b_.argument("x" + std::to_string(i), tensor.type()));
      arguments.push_back(std::move(tensor));
    }
  }

  /// One or more outputs, some of them twice.
  Program make(int nodes) {
    for (int i = 0; i < nodes; ++i) values_.push_back(ops::tanh(b_, node()));
    std::vector<Value> outputs{values_.back()};
    for (Value v : values_)
      if (rng_.chance(0.2)) outputs.push_back(v);
    outputs.push_back(places(argument()));
    outputs.push_back(outputs[0]);
    return b_.finish(outputs);
  }

  std::vector<Tensor> arguments;

 private:
  Value pick() { return values_[static_cast<std::size_t>(rng_.below(std::ssize(values_)))]; }
  Value argument() { return values_[static_cast<std::size_t>(rng_.below(3))]; }
  std::int64_t coin() { return rng_.below(2); }

  Value places(Value x) { return b_.emit("argsort", {x}, {{"descending", coin()}}); }

  Value node() {
    switch (rng_.below(14)) {
      case 0: return b_.emit("cumsum", {pick()}, {{"exclusive", coin()}, {"reverse", coin()}});
      case 1: return b_.emit("cumprod", {pick()}, {{"exclusive", coin()}, {"reverse", coin()}});
      case 2: return b_.emit("linear_recurrence", {pick(), pick()}, {{"reverse", coin()}});
      case 3: return b_.emit("sort", {argument()}, {{"descending", coin()}});
      case 4: return gathered();
      case 5: return solved();
      case 6: return attended();
      case 7: return scattered();
      case 8: return padded();
      case 9: return counted();
      case 10: return b_.emit("reverse", {pick()}, {{"axes", Integers{coin()}}});
      case 11: return ops::mul(b_, pick(), spread(ops::reduce_max(b_, pick(), {1})));
      case 12: return joined();
      default: return ops::select(b_, ops::lt(b_, argument(), argument()), pick(), ops::exp(b_, pick()));
    }
  }

  Value spread(Value column) { return ops::broadcast_in_dim(b_, column, {rows_, n_}, {0}); }

  /// Rows in the order that an argument has.
  Value gathered() {
    return b_.emit("gather", {pick(), places(argument())},
                   {{"extents", Integers{rows_, n_}}, {"from", std::string("a, #1[a,b]")}});
  }
  /// Entries where the order sends them, some to one place, some outside.
  Value scattered() {
    const Value order = places(argument());
    const Value to = ops::sub(b_, coin() ? order : ops::mul(b_, order, order), 1);
    return b_.emit("scatter", {pick(), pick(), to},
                   {{"axes", Integers{0, 1}},
                    {"base", std::int64_t{1}},
                    {"extents", Integers{rows_, n_}},
                    {"shape", Integers{rows_, n_}},
                    {"to", std::string("a, #2[a,b]")}});
  }
  /// l^-1 x with l l^T = x^T x + n.
  Value solved() {
    const Value x = pick();
    const Value square = ops::dot_general(b_, x, x, {0}, {0});
    const Value row = ops::iota(b_, {n_, n_}, 0, DType::i32), column = ops::iota(b_, {n_, n_}, 1, DType::i32);
    const Value shift =
        ops::mul(b_, static_cast<double>(n_), ops::convert(b_, ops::eq(b_, row, column), dtype_));
    const Value l = b_.emit("cholesky", {ops::add(b_, square, shift)});
    const Value turned = ops::transpose(b_, pick(), {1, 0});
    return ops::transpose(
        b_,
        b_.emit("triangular_solve", {l, turned},
                {{"lower", std::int64_t{1}}, {"transposed", coin()}, {"unit_diagonal", std::int64_t{0}}}),
        {1, 0});
  }
  Value attended() {
    const Value q = ops::reshape(b_, pick(), {1, 1, rows_, n_}), k = ops::reshape(b_, pick(), {1, rows_, n_}),
                v = ops::reshape(b_, pick(), {1, rows_, n_});
    const Value o = b_.emit("attention", {q, k, v}, {{"scale", 0.5}, {"causal", coin()}});
    return ops::reshape(b_, ops::slice(b_, o, {0, 0, 0, 0}, {1, 1, rows_, n_}), {rows_, n_});
  }
  /// Every other entry, with a value before and behind them.
  Value padded() {
    const Value part = ops::slice(b_, pick(), {0, 0}, {rows_, n_}, {1, 2});
    const std::int64_t missing = n_ - b_.shape(part)[1], before = rng_.below(missing + 1);
    return ops::pad(b_, part, b_.scalar(0.5, dtype_), {0, before}, {0, missing - before}, {0, 0});
  }
  /// Integers: places modulo 3, squared.
  Value counted() {
    const Value three = b_.scalar(3, DType::i64);
    const Value rest = b_.emit("rem", {places(argument()), three});
    return ops::convert(b_, b_.emit("max", {ops::mul(b_, rest, rest), three}), dtype_);
  }
  Value joined() {
    const Value both[] = {pick(), pick()};
    const Value wide = ops::concatenate(b_, both, 1);
    return ops::slice(b_, wide, {0, n_ / 2}, {rows_, n_ / 2 + n_});
  }

  Rng rng_;
  DType dtype_;
  Builder b_{"rows"};
  std::int64_t rows_ = 1, n_ = 1;
  std::vector<Value> values_;
};

}  // namespace loipe
