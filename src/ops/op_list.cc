// SPDX-License-Identifier: Apache-2.0
#include "ops/op_list.h"

#include <string>
#include <unordered_map>

#include "base/text.h"

namespace loipe {

namespace {

constexpr const OpDef* kOps[] = {
#define LOIPE_OP(name) &ops::op_##name,
#include "ops/op_list.def"
#undef LOIPE_OP
};

const std::unordered_map<std::string_view, const OpDef*>& ops_by_name() {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OpDef*> map;
    for (const OpDef* op : kOps) map.emplace(op->name, op);
    return map;
  }();
  return index;
}

}  // namespace

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef& find_op(std::string_view name) {
  const auto place = ops_by_name().find(name);
  if (place != ops_by_name().end()) return *place->second;
  std::vector<std::string> names;
  for (const OpDef* op : kOps) names.emplace_back(op->name.value);
  throw UserError("unknown op '" + std::string(name) + "'" + did_you_mean(name, names));
}

const OpDef& argument_op() { return ops::op_argument; }
const OpDef& constant_op() { return ops::op_constant; }

}  // namespace loipe
