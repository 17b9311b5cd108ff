// SPDX-License-Identifier: Apache-2.0
#include "backends/scalar/scalar_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace loipe::scalar {

namespace {

struct Description {
  int arity;
  std::string_view name;
};
constexpr Description kDescriptions[] = {
#define LOIPE_SCALAR_OP(op, arity, text) {arity, text},
#include "backends/scalar/scalar_ops.def"
#undef LOIPE_SCALAR_OP
};

}  // namespace

int arity(Op op) { return kDescriptions[static_cast<std::size_t>(op)].arity; }
std::string_view name(Op op) { return kDescriptions[static_cast<std::size_t>(op)].name; }
bool is_logical(Op op) { return op >= Op::eq && op <= Op::logical_not; }
bool is_function(Op op) { return op >= Op::exp; }

std::vector<std::size_t> first_elements(const std::vector<TensorType>& types) {
  std::vector<std::size_t> first{0};
  for (const TensorType& type : types)
    first.push_back(first.back() + static_cast<std::size_t>(type.element_count()));
  return first;
}

double evaluate(Op op, double a, double b, double c) {
  switch (op) {
    case Op::argument:
    case Op::constant: break;
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::neg: return -a;
    case Op::abs: return std::abs(a);
    case Op::sqrt: return std::sqrt(a);
    case Op::floor: return std::floor(a);
    case Op::ceil: return std::ceil(a);
    case Op::round: return std::nearbyint(a);
    case Op::max: return std::isnan(a) || a > b ? a : b;
    case Op::min: return std::isnan(a) || a < b ? a : b;
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    case Op::gt: return a > b;
    case Op::ge: return a >= b;
    case Op::logical_and: return a != 0 && b != 0;
    case Op::logical_or: return a != 0 || b != 0;
    case Op::logical_xor: return (a != 0) != (b != 0);
    case Op::logical_not: return a == 0;
    case Op::select: return a != 0 ? b : c;
    case Op::exp: return std::exp(a);
    case Op::exp2: return std::exp2(a);
    case Op::expm1: return std::expm1(a);
    case Op::log: return std::log(a);
    case Op::log1p: return std::log1p(a);
    case Op::cbrt: return std::cbrt(a);
    case Op::sin: return std::sin(a);
    case Op::cos: return std::cos(a);
    case Op::tan: return std::tan(a);
    case Op::asin: return std::asin(a);
    case Op::acos: return std::acos(a);
    case Op::atan: return std::atan(a);
    case Op::sinh: return std::sinh(a);
    case Op::cosh: return std::cosh(a);
    case Op::tanh: return std::tanh(a);
    case Op::asinh: return std::asinh(a);
    case Op::acosh: return std::acosh(a);
    case Op::atanh: return std::atanh(a);
    case Op::erf: return std::erf(a);
    case Op::erfc: return std::erfc(a);
    case Op::pow: return std::pow(a, b);
    case Op::atan2: return std::atan2(a, b);
  }
  throw InternalError("a scalar leaf has no evaluation");
}

std::string content(const Program& program) {
  std::string bytes;
  const auto add = [&](std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) bytes += static_cast<char>(number >> (8 * byte));
  };
  add(static_cast<std::uint64_t>(program.dtype));
  for (const auto* types : {&program.arguments, &program.outputs}) {
    add(types->size());
    for (const TensorType& type : *types) add(static_cast<std::uint64_t>(type.element_count()));
  }
  add(program.constants.size());
  for (double constant : program.constants) add(std::bit_cast<std::uint64_t>(constant));
  add(program.nodes.size());
  for (const Node& node : program.nodes) {
    add(static_cast<std::uint64_t>(node.op));
    for (Id operand : node.operands) add(operand);
  }
  for (const Program::Output& store : program.stores) {
    add(store.output);
    add(store.element);
    add(store.value);
  }
  return bytes;
}

bool stores_constants(const Program& program) {
  return std::ranges::any_of(program.stores, [&](const Program::Output& store) {
    return program.nodes[store.value].op == Op::constant;
  });
}

Id Builder::add(const Node& node) {
  auto [place, is_new] = known_.try_emplace(node, static_cast<Id>(program_.nodes.size()));
  if (is_new) program_.nodes.push_back(node);
  return place->second;
}

Id Builder::argument(std::uint32_t argument, std::uint32_t element) {
  return add({Op::argument, {argument, element, 0}});
}

Id Builder::constant(double value) {
  if (program_.dtype == DType::f32) value = static_cast<double>(static_cast<float>(value));
  auto [place, is_new] = known_constants_.try_emplace(std::bit_cast<std::uint64_t>(value),
                                                      static_cast<std::uint32_t>(program_.constants.size()));
  if (is_new) program_.constants.push_back(value);
  return add({Op::constant, {place->second, 0, 0}});
}

std::optional<double> Builder::constant_value(Id id) const {
  const Node& node = program_.nodes[id];
  if (node.op != Op::constant) return std::nullopt;
  return program_.constants[node.operands[0]];
}

std::optional<Id> Builder::simplified(Op op, Id a, Id b, Id c) {
  const int n = arity(op);
  const std::optional<double> x = constant_value(a);
  std::optional<double> y, z;
  if (n > 1) y = constant_value(b);
  if (n > 2) z = constant_value(c);
  if (op == Op::select) {
    if (x) return *x != 0 ? b : c;
    if (b == c) return b;
    return std::nullopt;
  }
  if (x && (n < 2 || y) && (n < 3 || z)) return constant(evaluate(op, *x, y.value_or(0), z.value_or(0)));
  const auto is = [](const std::optional<double>& v, double number) { return v && *v == number; };
  switch (op) {
    case Op::add:
      if (is(x, 0)) return b;
      if (is(y, 0)) return a;
      if (program_.nodes[b].op == Op::neg) return emit(Op::sub, a, program_.nodes[b].operands[0]);
      if (program_.nodes[a].op == Op::neg) return emit(Op::sub, b, program_.nodes[a].operands[0]);
      break;
    case Op::sub:
      if (is(y, 0)) return a;
      if (is(x, 0)) return emit(Op::neg, b);
      if (program_.nodes[b].op == Op::neg) return emit(Op::add, a, program_.nodes[b].operands[0]);
      break;
    case Op::mul:
      if (is(x, 1)) return b;
      if (is(y, 1)) return a;
      if (is(x, -1)) return emit(Op::neg, b);
      if (is(y, -1)) return emit(Op::neg, a);
      // (-p)*q = -(p*q): signs gather where additions swallow them.
      if (program_.nodes[a].op == Op::neg)
        return emit(Op::neg, emit(Op::mul, program_.nodes[a].operands[0], b));
      if (program_.nodes[b].op == Op::neg)
        return emit(Op::neg, emit(Op::mul, a, program_.nodes[b].operands[0]));
      break;
    case Op::div:
      if (is(y, 1)) return a;
      if (is(y, -1)) return emit(Op::neg, a);
      break;
    case Op::neg:
      if (program_.nodes[a].op == Op::neg) return program_.nodes[a].operands[0];
      if (program_.nodes[a].op == Op::sub)
        return emit(Op::sub, program_.nodes[a].operands[1], program_.nodes[a].operands[0]);
      break;
    default: break;
  }
  return std::nullopt;
}

Id Builder::emit(Op op, Id a, Id b, Id c) {
  require(a < program_.nodes.size(), "a scalar operand is not defined");
  if (auto known = simplified(op, a, b, c)) return *known;
  const bool commutes = op == Op::add || op == Op::mul;
  if (commutes && b < a) std::swap(a, b);
  return add({op, {a, arity(op) > 1 ? b : 0, arity(op) > 2 ? c : 0}});
}

namespace {

/// Emits nodes in the order in which a depth-first walk finishes them; no recursion.
class Scheduler {
 public:
  explicit Scheduler(const Program& from) : from_(from), place_(from.nodes.size(), kNone) {
    to_.dtype = from.dtype;
    to_.arguments = from.arguments;
    to_.outputs = from.outputs;
    to_.constants = from.constants;
  }

  Program run() {
    to_.nodes.reserve(from_.nodes.size());
    for (const Program::Output& store : from_.stores) {
      visit(store.value);
      to_.stores.push_back({store.output, store.element, place_[store.value]});
    }
    return std::move(to_);
  }

 private:
  static constexpr Id kNone = ~Id{0};

  void visit(Id root) {
    stack_.push_back({root, 0});
    while (!stack_.empty()) {
      auto& [id, next] = stack_.back();
      const Node& node = from_.nodes[id];
      if (place_[id] != kNone) {
        stack_.pop_back();
      } else if (next < arity(node.op)) {
        const Id operand = node.operands[next++];
        if (place_[operand] == kNone) stack_.push_back({operand, 0});
      } else {
        Node copy = node;
        for (int k = 0; k < arity(node.op); ++k) copy.operands[k] = place_[node.operands[k]];
        place_[id] = static_cast<Id>(to_.nodes.size());
        to_.nodes.push_back(copy);
        stack_.pop_back();
      }
    }
  }

  const Program& from_;
  Program to_;
  std::vector<Id> place_;
  std::vector<std::pair<Id, int>> stack_;
};

}  // namespace

Program scheduled(const Program& program) { return Scheduler(program).run(); }

}  // namespace loipe::scalar
