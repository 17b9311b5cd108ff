// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace loipe {

/// Which arguments to differentiate by: positions or names.
using ArgumentRef = std::variant<int, std::string>;

/// What a run writes of each block.
enum class BlockFormat : std::uint8_t {
  dense,       ///< all elements, structural zeros too
  coo,         ///< the entries of its pattern alone, see Jacobian::block_pattern and Derivative::pattern
  structured,  ///< the tensors of its structured form, see Jacobian::structure
};

/// Options of every derivative; one that does not fit the kind is a UserError.
struct DerivativeOptions {
  /// Empty: by all floating arguments.
  std::vector<ArgumentRef> wrt = {};
  /// The elimination order: forward, reverse, markowitz, random:SEED, or a JSON file with a
  /// permutation of the vertices. Empty: forward for a JVP, else reverse.
  std::string order = {};
  /// "jit" (compiled) or "reference" (the interpreter that every test trusts).
  std::string backend = "jit";
  /// Threads of one run; 0: all cores. Results do not depend on it.
  int threads = 0;
  /// Bytes that one run of `batch` examples may need; 0: no limit. ResourceError when it
  /// needs more.
  std::size_t memory_limit = 0;
  /// Whether values between the layers of a gradient may be computed a second time rather than kept where
  /// the limit else cannot be met. Sums may then be rounded in another order; without it, results do not
  /// depend on the limit.
  bool recompute = false;
  /// Examples of one run_batch that the code is made for, at least 1. More than 1 turns
  /// programs of scalars and small tensors into vector code over examples; others run
  /// example by example. Any number of examples may be run all the same.
  std::int64_t batch = 1;
  /// Runs take subnormal numbers (below 1.2e-38 in f32, 2.2e-308 in f64) for 0, as some other tools always
  /// do. Most processors compute with them many times slower than with others; but what is
  /// that small then is 0, and its logarithm -inf.
  bool flush_subnormals = false;
  /// Arguments of which run_batch takes one value for all examples.
  std::vector<ArgumentRef> shared = {};
  /// For Jacobians and Hessians; `structured` for Jacobians. Only `dense` computes and
  /// stores structural zeros.
  BlockFormat format = BlockFormat::dense;
  /// Positions of the outputs to differentiate; empty: all. The others are computed and
  /// returned beside (auxiliary outputs) and may be of any dtype.
  std::vector<int> of = {};
  /// Of a JVP, VJP or Hessian-vector product: 0 is one direction, k > 0 are k of them, for
  /// which tangents, cotangents and results have a leading axis.
  std::int64_t directions = 0;
  /// Of a Hessian or Hessian-vector product, the order in which the program of the Jacobian
  /// is eliminated; `order` is that of the function. Empty: forward for products, and of
  /// forward and reverse the one that executes less for Hessians.
  std::string outer_order = {};
  /// Whether results hold a report of each approximate attention (DerivativeResult::attention). Not for batches,
  /// nor for runs on spans.
  bool attention_reports = false;
};

}  // namespace loipe
