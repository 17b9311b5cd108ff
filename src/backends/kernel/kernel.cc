// SPDX-License-Identifier: Apache-2.0
#include "backends/kernel/kernel.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/text.h"

namespace loipe::kernel {

std::int64_t Kernel::chunks() const { return std::max<std::int64_t>(extents[chunked] / chunk, 1); }

std::int64_t Kernel::tiles() const {
  std::int64_t count = chunks();
  for (std::size_t loop = 0; loop < chunked; ++loop) count *= extents[loop];
  return count;
}

namespace {

std::string list(const Integers& numbers) {
  std::vector<std::string> texts;
  for (std::int64_t number : numbers) texts.push_back(std::to_string(number));
  return "[" + join(texts, ", ") + "]";
}

std::string id_text(Id id) { return "%" + std::to_string(id); }

std::string node_text(const Node& node) {
  switch (node.kind) {
    case Kind::load: return "load a" + std::to_string(node.operands[0]);
    case Kind::convert: return "convert " + id_text(node.operands[0]);
    case Kind::constant: {
      char number[40];
      std::snprintf(number, sizeof number, "constant %a", node.value);
      return number;
    }
    case Kind::scalar: break;
  }
  std::vector<std::string> operands;
  for (int k = 0; k < scalar::arity(node.op); ++k)
    operands.push_back(id_text(node.operands[static_cast<std::size_t>(k)]));
  return std::string(scalar::name(node.op)) + " " + join(operands, ", ");
}

const char* name_of(Reduction reduction) {
  constexpr const char* kNames[] = {"none", "sum", "max", "min"};
  return kNames[static_cast<std::size_t>(reduction)];
}

}  // namespace

std::string to_text(const Kernel& kernel) {
  std::string text = "kernel over " + list(kernel.extents) + ", " + std::to_string(kernel.vectors) + " x " +
                     std::to_string(kernel.lanes) + " lanes, chunks of " + std::to_string(kernel.chunk) +
                     " in loop " + std::to_string(kernel.chunked);
  if (kernel.block_rows > 0) text += ", blocks of " + std::to_string(kernel.block_rows) + " rows";
  if (kernel.reduction != Reduction::none)
    text += std::string(", ") + name_of(kernel.reduction) + " over " + std::to_string(kernel.reduced_loops) +
            " loops before the last";
  text += "\n";
  for (std::size_t k = 0; k < kernel.accesses.size(); ++k) {
    const Access& access = kernel.accesses[k];
    text += "  a" + std::to_string(k) + ": " + std::string(to_string(access.dtype)) +
            (access.is_streamed     ? " streamed "
             : access.is_written    ? " written "
             : access.is_transposed ? " transposed "
                                    : " read ") +
            list(access.strides) + "\n";
  }
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    text += "  " + id_text(static_cast<Id>(i)) + " = " + node_text(kernel.body[i]) + " : " +
            std::string(to_string(kernel.body[i].dtype)) + "\n";
  for (const Store& store : kernel.stores)
    text += std::string("  ") + (store.is_reduced ? "reduce" : "store") + " a" +
            std::to_string(store.access) + ", " + id_text(store.value) + "\n";
  return text;
}

namespace {

void verify_schedule(const Kernel& kernel) {
  const std::size_t rank = kernel.rank();
  require(rank > 0, "a kernel has no loop");
  for (std::int64_t extent : kernel.extents) require(extent > 0, "a kernel has an empty loop");
  require(kernel.lanes >= 1 && kernel.vectors >= 1 && kernel.step() <= kernel.extents.back(),
          "a kernel has more lanes than its last loop");
  require(kernel.chunked < rank && kernel.chunk >= 1, "a kernel has no chunks");
  require(kernel.chunked + 1 < rank || kernel.chunk >= kernel.step(), "a chunk is shorter than a vector");
  require(kernel.chunk <= kernel.extents[kernel.chunked], "a chunk is longer than its loop");
  if (kernel.block_rows == 0) return;
  require(rank >= 2 && kernel.chunked + 2 <= rank && kernel.block_rows <= kernel.extents[rank - 2],
          "the blocks of a kernel do not fit");
  require(kernel.chunked + 2 < rank || kernel.chunk >= kernel.block_rows, "a chunk is shorter than a block");
}

void verify_streamed(const Kernel& kernel, const Access& access) {
  require(access.is_written && kernel.extents.back() % kernel.step() == 0, "a streamed access has a rest");
  for (std::size_t loop = 0; loop + 1 < kernel.rank(); ++loop)
    require(access.strides[loop] % kernel.lanes == 0, "a streamed access is not aligned");
}

void verify_access(const Kernel& kernel, const Access& access) {
  const std::size_t rank = kernel.rank();
  require(access.strides.size() == rank, "an access of a kernel has another rank");
  if (access.is_transposed)
    require(kernel.block_rows > 0 && !access.is_written && access.strides[rank - 2] == 1,
            "a transposed access is not contiguous along the rows");
  if (access.is_streamed) verify_streamed(kernel, access);
}

void verify_scalar(const Kernel& kernel, const Node& node) {
  const auto dtype = [&](std::size_t k) { return kernel.body[node.operands[k]].dtype; };
  const auto arity = static_cast<std::size_t>(scalar::arity(node.op));
  require(arity > 0, "a leaf of scalar programs in a kernel");
  const bool takes_truth = node.op >= scalar::Op::logical_and && node.op <= scalar::Op::logical_not;
  require(scalar::is_logical(node.op) ? node.dtype == DType::boolean
                                      : is_floating(node.dtype) || node.op == scalar::Op::select,
          "a node of a kernel has another dtype than its op");
  if (node.op == scalar::Op::select) {
    require(dtype(0) == DType::boolean && dtype(1) == node.dtype && dtype(2) == node.dtype,
            "a select of a kernel mixes dtypes");
    return;
  }
  for (std::size_t k = 0; k < arity; ++k)
    require(scalar::is_logical(node.op) ? (dtype(k) == DType::boolean) == takes_truth && dtype(k) == dtype(0)
                                        : dtype(k) == node.dtype,
            "an op of a kernel mixes dtypes");
}

void verify_node(const Kernel& kernel, std::size_t position) {
  const Node& node = kernel.body[position];
  if (node.kind == Kind::constant) return;
  if (node.kind == Kind::load) {
    require(node.operands[0] < kernel.accesses.size(), "a kernel loads from no access");
    const Access& access = kernel.accesses[node.operands[0]];
    require(!access.is_written && access.dtype == node.dtype, "a kernel loads what it cannot");
    return;
  }
  const int operands = node.kind == Kind::convert ? 1 : scalar::arity(node.op);
  for (int k = 0; k < operands; ++k)
    require(node.operands[static_cast<std::size_t>(k)] < position,
            "a kernel uses a value before it is there");
  if (node.kind == Kind::scalar) verify_scalar(kernel, node);
  else require(!is_integer(node.dtype), "a kernel computes integers");
}

void verify_store(const Kernel& kernel, const Store& store) {
  require(store.access < kernel.accesses.size() && store.value < kernel.body.size(),
          "a store has no operands");
  const Access& access = kernel.accesses[store.access];
  require(access.is_written && access.dtype == kernel.body[store.value].dtype,
          "a kernel stores what it cannot");
  require(access.strides.back() == 1, "a written access is not contiguous");
  if (!store.is_reduced) return;
  require(kernel.reduction != Reduction::none && is_floating(access.dtype), "a store is reduced by nothing");
  for (std::size_t loop = 0; loop < kernel.rank(); ++loop)
    require(!kernel.is_reduced(loop) || access.strides[loop] == 0,
            "a reduced store moves along a reduced loop");
}

void verify_reduction(const Kernel& kernel) {
  require((kernel.reduction == Reduction::none) == (kernel.reduced_loops == 0), "a reduction has no loops");
  if (kernel.reduced_loops == 0) return;
  require(kernel.reduced_loops + 2 <= kernel.rank() && kernel.chunked < kernel.first_reduced() &&
              kernel.block_rows == 0,
          "a reduction does not fit the loops");
}

}  // namespace

void verify(const Kernel& kernel) {
  verify_schedule(kernel);
  verify_reduction(kernel);
  for (const Access& access : kernel.accesses) verify_access(kernel, access);
  for (std::size_t i = 0; i < kernel.body.size(); ++i) verify_node(kernel, i);
  std::vector<bool> is_stored(kernel.accesses.size(), false);
  for (const Store& store : kernel.stores) {
    verify_store(kernel, store);
    require(!is_stored[store.access], "a kernel stores twice");
    is_stored[store.access] = true;
  }
  require(!kernel.stores.empty(), "a kernel stores nothing");
}

}  // namespace loipe::kernel
