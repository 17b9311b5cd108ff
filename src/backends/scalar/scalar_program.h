// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loipe::scalar {

/// Index of a node.
using Id = std::uint32_t;

/// What one scalar node computes from up to three earlier ones.
enum class Op : std::uint8_t {
#define LOIPE_SCALAR_OP(name, arity, text) name,
#include "backends/scalar/scalar_ops.def"
#undef LOIPE_SCALAR_OP
};
inline constexpr std::size_t kOpCount = 0
#define LOIPE_SCALAR_OP(name, arity, text) +1
#include "backends/scalar/scalar_ops.def"
#undef LOIPE_SCALAR_OP
    ;

/// Number of operands.
int arity(Op op);
/// The name of the record in ops/ with the same meaning; "" where there is none.
std::string_view name(Op op);
/// Whether the result is a truth value.
bool is_logical(Op op);
/// The function of a real number or two that libm computes (exp, sin, pow, ...).
bool is_function(Op op);

struct Node {
  Op op;
  Id operands[3];  ///< `argument`: argument, element, -; `constant`: index into constants
};

/// Straight-line code over scalars of one floating dtype: what small programs
/// become when every tensor element is a value of its own. It has no shapes and no
/// loops, so it runs on one lane of a vector as well as on a number.
struct Program {
  struct Output {
    std::uint32_t output;
    std::uint32_t element;
    Id value;
  };
  DType dtype = DType::f64;
  std::vector<TensorType> arguments;  ///< of one example
  std::vector<TensorType> outputs;
  std::vector<Node> nodes;  ///< operands before users
  std::vector<double> constants;
  std::vector<Output> stores;  ///< every element of every output once
};

/// Numbers of the first elements when those of all types are counted through, and the
/// number of all as the last.
std::vector<std::size_t> first_elements(const std::vector<TensorType>& types);

/// Builds nodes; equal ones are one, constants fold, and identities that are exact
/// for every number (x*1, x/1, x-0, -(-x), x + 0 up to the sign of zero) vanish.
class Builder {
 public:
  explicit Builder(DType dtype) { program_.dtype = dtype; }

  Id argument(std::uint32_t argument, std::uint32_t element);
  Id constant(double value);
  Id truth(bool value) { return constant(value ? 1 : 0); }
  Id emit(Op op, Id a, Id b = 0, Id c = 0);
  std::optional<double> constant_value(Id id) const;

  Program& program() { return program_; }

 private:
  Id add(const Node& node);
  std::optional<Id> simplified(Op op, Id a, Id b, Id c);

  struct Hash {
    std::size_t operator()(const Node& n) const {
      std::uint64_t h = static_cast<std::uint64_t>(n.op) + 0x9e3779b97f4a7c15u;
      for (Id id : n.operands) h = (h ^ id) * 0xff51afd7ed558ccdu, h ^= h >> 32;
      return static_cast<std::size_t>(h);
    }
  };
  struct Equal {
    bool operator()(const Node& x, const Node& y) const {
      return x.op == y.op && x.operands[0] == y.operands[0] && x.operands[1] == y.operands[1] &&
             x.operands[2] == y.operands[2];
    }
  };
  Program program_;
  std::unordered_map<Node, Id, Hash, Equal> known_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_constants_;
};

/// All of the program as bytes that differ for different programs.
std::string content(const Program& program);

/// Whether output elements are constants.
bool stores_constants(const Program& program);

/// Drops what no store needs and orders the rest depth first, store by store, so
/// that values die soon after they are born.
Program scheduled(const Program& program);

/// Evaluates one example in double precision: for constant folding and tests.
double evaluate(Op op, double a, double b, double c);

}  // namespace loipe::scalar
