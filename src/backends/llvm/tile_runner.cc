// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/tile_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace loipe::jit {

namespace {

constexpr std::size_t kLine = 64;

std::size_t rounded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

/// Addresses are computed as numbers: the start of a row that begins at a later example
/// lies outside the row.
template <class Pointer>
Pointer shifted(Pointer address, std::size_t back) {
  return reinterpret_cast<Pointer>(reinterpret_cast<std::uintptr_t>(address) - back);
}

}  // namespace

TilePlan plan_tiles(const scalar::Program& program, const KernelShape& shape,
                    std::int64_t most_tiles_per_block) {
  TilePlan plan;
  plan.element_bytes = size_of(program.dtype);
  plan.lanes = shape.lanes;
  plan.vector_bytes = plan.element_bytes * static_cast<std::size_t>(shape.lanes);
  plan.scratch_bytes = shape.scratch_vectors * plan.vector_bytes;
  plan.first_in = scalar::first_elements(program.arguments);
  plan.first_out = scalar::first_elements(program.outputs);
  for (const scalar::Program::Output& store : program.stores)
    if (const scalar::Node& node = program.nodes[store.value]; node.op == scalar::Op::constant)
      plan.constants.push_back({store.output, store.element, program.constants[node.operands[0]]});
  // The rows of a block that are used, all together, shall stay in a first cache beside the
  // results that they become.
  constexpr std::size_t kBlockBytes = 16 << 10;
  std::size_t rows = plan.first_in.back();
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    const std::size_t size = plan.first_out[k + 1] - plan.first_out[k];
    if (size < 2) continue;
    plan.wide_out.push_back(k);
    rows += size;
  }
  const std::size_t tile_bytes = rows * plan.vector_bytes;
  plan.tiles_per_block = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::bit_floor(kBlockBytes / std::max<std::size_t>(tile_bytes, 1))), 1,
      most_tiles_per_block);
  std::size_t end = rounded(plan.first_in.back() * sizeof(void*));
  const auto place = [&](std::size_t size) {
    const std::size_t begin = end;
    end += rounded(size);
    return begin;
  };
  plan.out_table = place(plan.first_out.back() * sizeof(void*));
  plan.scratch = place(plan.scratch_bytes);
  plan.rows_in = place(plan.first_in.back() * plan.row_bytes());
  plan.rows_out = place(plan.first_out.back() * plan.row_bytes());
  plan.workspace_bytes = end;
  return plan;
}

namespace {

template <class T>
void fill_constant_rows(const TilePlan& plan, std::byte* workspace) {
  for (const TilePlan::Constant& constant : plan.constants) {
    const std::size_t row = plan.first_out[constant.output] + constant.element;
    T* target = reinterpret_cast<T*>(workspace + plan.rows_out + row * plan.row_bytes());
    std::fill_n(target, plan.row_bytes() / sizeof(T), static_cast<T>(constant.value));
  }
}

}  // namespace

void prepare_workspace(const TilePlan& plan, std::byte* workspace) {
  if (plan.element_bytes == 8) fill_constant_rows<double>(plan, workspace);
  else fill_constant_rows<float>(plan, workspace);
}

TileRunner::TileRunner(const TilePlan& plan, const BatchRun& run, bool results_stay_in_cache,
                       std::byte* workspace)
    : plan_(plan),
      run_(run),
      workspace_(workspace),
      in_rows_(run.layouts.arguments == BatchLayout::structure_of_arrays),
      out_rows_(run.layouts.results == BatchLayout::structure_of_arrays),
      writes_constants_by_tile_(results_stay_in_cache &&
                                std::ranges::any_of(plan.constants, [this](const TilePlan::Constant& c) {
                                  return has_rows_out(c.output);
                                })) {}

void TileRunner::operator()(std::int64_t first, std::int64_t last) {
  if (!is_bound_) bind();
  if (!writes_constants_by_tile_) {
    if (plan_.element_bytes == 8) write_constants<double>(first, last);
    else write_constants<float>(first, last);
  }
  const std::int64_t whole = last - (last - first) % plan_.lanes;
  const std::int64_t block = uses_rows_ ? plan_.tiles_per_block * plan_.lanes : last - first;
  for (std::int64_t at = first; at < whole; at += block)
    run_block(at, (std::min(whole, at + block) - at) / plan_.lanes);
  if (whole == last) return;
  if (plan_.element_bytes == 8) run_tail<double>(whole, last - whole);
  else run_tail<float>(whole, last - whole);
}

/// The addresses that are the same for all blocks: rows of the caller.
void TileRunner::bind() {
  uses_rows_ = !out_rows_ && !plan_.wide_out.empty();
  for (std::size_t k = 0; k < run_.arguments.size(); ++k) {
    uses_rows_ = uses_rows_ || run_.is_shared[k] || !has_rows_in(k);
    if (run_.is_shared[k]) {
      if (plan_.element_bytes == 8) fill_shared<double>(k);
      else fill_shared<float>(k);
    } else if (has_rows_in(k)) {
      for (std::size_t e = 0; e < in_size(k); ++e)
        in_table()[plan_.first_in[k] + e] =
            run_.arguments[k].data() + e * bytes(run_.layouts.argument_stride);
    }
  }
  for (std::size_t k = 0; k < run_.outputs.size(); ++k)
    if (has_rows_out(k))
      for (std::size_t e = 0; e < out_size(k); ++e)
        out_table()[plan_.first_out[k] + e] = run_.outputs[k].data() + e * bytes(run_.layouts.result_stride);
  is_bound_ = true;
}

template <class T>
void TileRunner::fill_shared(std::size_t k) {
  for (std::size_t e = 0; e < in_size(k); ++e) {
    T value;
    std::memcpy(&value, run_.arguments[k].data() + e * sizeof(T), sizeof(T));
    std::fill_n(reinterpret_cast<T*>(row_in(plan_.first_in[k] + e)), plan_.row_bytes() / sizeof(T), value);
  }
}

/// Rows of constants at once.
template <class T>
void TileRunner::write_constants(std::int64_t first, std::int64_t last) {
  for (const TilePlan::Constant& constant : plan_.constants) {
    if (!has_rows_out(constant.output)) continue;
    T* target = reinterpret_cast<T*>(run_.outputs[constant.output].data()) +
                static_cast<std::int64_t>(constant.element) * run_.layouts.result_stride + first;
    const T value = static_cast<T>(constant.value);
    if (value == 0 && !std::signbit(value)) std::memset(target, 0, bytes(last - first));
    else std::fill_n(target, last - first, value);
  }
}

void TileRunner::run_block(std::int64_t first, std::int64_t tiles) {
  const std::size_t begin = bytes(first);
  for (std::size_t k = 0; uses_rows_ && k < run_.arguments.size(); ++k) {
    const std::size_t p = plan_.first_in[k];
    if (!run_.is_shared[k] && has_rows_in(k)) continue;
    for (std::size_t e = 0; e < in_size(k); ++e) in_table()[p + e] = shifted(row_in(p + e), begin);
    if (run_.is_shared[k] || in_size(k) == 0) continue;
    // The transposition only reads its examples here.
    auto* examples = const_cast<std::byte*>(run_.arguments[k].data()) + begin * in_size(k);
    plan_.to_rows[k](row_in(p), examples, static_cast<std::int64_t>(plan_.row_bytes()), tiles);
  }
  const std::span<const std::size_t> wide =
      out_rows_ ? std::span<const std::size_t>() : std::span<const std::size_t>(plan_.wide_out);
  for (std::size_t k : wide)
    for (std::size_t q = plan_.first_out[k]; q < plan_.first_out[k + 1]; ++q)
      out_table()[q] = shifted(row_out(q), begin);
  const Kernel kernel = writes_constants_by_tile_ ? plan_.kernel_with_constants : plan_.kernel;
  kernel(in_table(), out_table(), workspace_ + plan_.scratch, static_cast<std::int64_t>(begin),
         static_cast<std::int64_t>(begin + static_cast<std::size_t>(tiles) * plan_.vector_bytes));
  for (std::size_t k : wide)
    plan_.to_examples[k](row_out(plan_.first_out[k]), run_.outputs[k].data() + begin * out_size(k),
                         static_cast<std::int64_t>(plan_.row_bytes()), tiles);
}

/// A tile beyond the end repeats its last example: no lane computes on garbage. All its results pass through
/// rows of the workspace, in which constants stand.
template <class T>
void TileRunner::run_tail(std::int64_t first, std::int64_t count) {
  const auto place = [](std::size_t size, bool rows, std::int64_t stride, std::size_t e,
                        std::int64_t example) {
    const auto element = static_cast<std::int64_t>(e);
    return rows ? element * stride + example : example * static_cast<std::int64_t>(size) + element;
  };
  for (std::size_t k = 0; k < run_.arguments.size(); ++k)
    for (std::size_t e = 0; e < in_size(k); ++e) {
      T* row = reinterpret_cast<T*>(row_in(plan_.first_in[k] + e));
      in_table()[plan_.first_in[k] + e] = row;
      if (run_.is_shared[k]) continue;
      const T* data = reinterpret_cast<const T*>(run_.arguments[k].data());
      for (std::int64_t lane = 0; lane < plan_.lanes; ++lane)
        row[lane] = data[place(in_size(k), in_rows_, run_.layouts.argument_stride, e,
                               first + std::min(lane, count - 1))];
    }
  for (std::size_t q = 0; q < plan_.first_out.back(); ++q) out_table()[q] = row_out(q);
  is_bound_ = false;
  plan_.kernel(in_table(), out_table(), workspace_ + plan_.scratch, 0,
               static_cast<std::int64_t>(plan_.vector_bytes));
  for (std::size_t k = 0; k < run_.outputs.size(); ++k)
    for (std::size_t e = 0; e < out_size(k); ++e) {
      const T* row = reinterpret_cast<const T*>(row_out(plan_.first_out[k] + e));
      T* data = reinterpret_cast<T*>(run_.outputs[k].data());
      for (std::int64_t lane = 0; lane < count; ++lane)
        data[place(out_size(k), out_rows_, run_.layouts.result_stride, e, first + lane)] = row[lane];
    }
}

}  // namespace loipe::jit
