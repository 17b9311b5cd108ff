// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "support/case.h"

namespace loipe::testing {

/// A change of a case, in terms of the values of its program.
struct Edit {
  struct Extents {
    std::int64_t from, to;
    std::optional<std::size_t> argument;  ///< only its axes; absent: everywhere, attributes included
  };
  std::optional<std::vector<Value>> outputs = {};
  std::map<Value, Value> replaced = {};  ///< by an earlier value of the same type
  std::set<Value> cut = {};              ///< becomes an argument that holds the node's value
  std::map<Value, Tensor> tensors = {};  ///< other contents of arguments and constants
  std::optional<Extents> extents = {};
};

/// The value of every node; where the interpreter throws, only those of arguments and
/// constants.
struct NodeValues {
  std::vector<Tensor> of;
  bool are_complete = true;
};
NodeValues node_values(const Case& c);

/// The case with the change and without what no output needs any more; nothing where
/// types no longer fit.
std::optional<Case> edited(const Case& c, const Edit& edit, const NodeValues& values);

}  // namespace loipe::testing
