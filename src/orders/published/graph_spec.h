// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace loipe::published {

using Shape = std::vector<std::int64_t>;

/// Operand of a vertex: an input of the function, ...
struct InputRef {
  int index;  ///< from 0
};

/// ... the value of an earlier vertex, ...
struct VertexRef {
  int number;  ///< from 1
};

/// ... or a constant, which has no edge but whose size selects edge types.
struct Literal {
  double value = 0;
  Shape shape = {};
};

using Operand = std::variant<InputRef, VertexRef, Literal>;

/// The parameters that the type rules read.
struct Params {
  std::vector<int> contract_lhs = {};  ///< dot_general: contracted axes
  std::vector<int> contract_rhs = {};
  std::vector<int> batch_lhs = {};  ///< dot_general: batch axes, which the rule ignores
  std::vector<int> batch_rhs = {};
  std::vector<int> axes = {};  ///< reductions: reduced axes
};

/// One traced equation. Primitives have their JAX names.
struct VertexSpec {
  std::string primitive;
  std::vector<Operand> operands;
  Shape shape;
  Params params = {};
};

/// A traced function: vertices in program order, numbered from 1.
struct GraphSpec {
  std::vector<Shape> input_shapes;
  std::vector<VertexSpec> vertices;
  std::vector<int> outputs;  ///< vertex numbers
};

}  // namespace loipe::published
