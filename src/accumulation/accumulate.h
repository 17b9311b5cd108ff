// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "graph/eliminate.h"
#include "ir/op_def.h"
#include "orders/order.h"

namespace loipe {

/// What the Jacobian of a program should contain.
struct AccumulationRequest {
  std::vector<std::size_t> wrt;  ///< positions of the arguments to differentiate by
  /// Of the program's eliminable vertices. Vertices that seeds hang on are outside it: they
  /// go first where the directions are no more than the elements there, else last.
  EliminationOrder order;
  /// Per argument of the program: it carries a leading batch axis, as every output
  /// does, and examples do not mix. Blocks by such an argument hold, per example,
  /// the derivative of the example's output by the example's own input: shape
  /// [B] + output + input, both without their batch axis. Empty: no batch axis.
  std::vector<bool> batched = {};
  /// J M instead of J: the program gets an argument `tangent.<name>` of shape directions +
  /// argument for each of wrt, and one block d(out i)/dt of shape directions + output for
  /// each output. The shape is [] for one direction, [k] for k of them.
  std::optional<Shape> tangents = {};
  /// U J instead of J: an argument `cotangent.<i>` of shape directions + output for each
  /// output, and one block ds/d(wrt k) of shape directions + argument for each of wrt.
  std::optional<Shape> cotangents = {};
  /// Whether the program returns the dense blocks; without, they are structure only.
  bool writes_blocks = true;
  /// Blocks lack the axes of the output, which is one number.
  bool is_gradient = false;
  /// The outputs are the blocks of a Jacobian by the same arguments, output by output, so that
  /// the blocks are second derivatives, which are symmetric: of (a, b) and (b, a) one is
  /// computed, the other is its transposed.
  bool is_hessian = false;
  /// What the program returns before the blocks; absent: the primal outputs.
  std::optional<std::vector<Value>> returned = {};
};

/// The Jacobian as a tensor program: the recorded elimination.
struct Accumulation {
  /// The primal nodes (with their old numbers), seeds, partials, elimination, and the
  /// dense blocks. Outputs: what is returned of the primal, then, if asked for, d(out i)/d(wrt k) for
  /// all i, k in row-major order. Arguments: the primal ones, tangents, cotangents.
  Program program;
  /// The same blocks as structure; values refer to nodes of `program`.
  std::vector<LocalJacobian> blocks;

  ActualCost cost;  ///< of the elimination, from the labels of products and sums
  OpCost counted;   ///< of the elimination, from the recorded nodes
  EliminationStatistics statistics;
  CompGraph graph;  ///< before elimination
  std::size_t primal_nodes = 0;
  std::size_t partial_nodes = 0;  ///< nodes that linearization added
};

/// Linearizes, eliminates in the given order, records. The order is validated.
Accumulation accumulate(const Program& program, const AccumulationRequest& request);

/// Scalar operations of the nodes first..last-1 on floating values.
OpCost count_operations(const Program& program, std::size_t first, std::size_t last);
/// Of all nodes.
OpCost count_operations(const Program& program);

}  // namespace loipe
