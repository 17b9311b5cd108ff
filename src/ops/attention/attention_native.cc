// SPDX-License-Identifier: Apache-2.0
// The ops of attention by the kernels of src/attention: exact, or approximate where the attribute allows
// it. A head of keys with its queries' heads is contiguous in the result, and may have strides in the
// operands. Beside their results attention and attention_vjp leave reports of the heads, and attention the
// statistics that its derivatives want.
#include <algorithm>
#include <array>
#include <bit>

#include "attention/approximate/approximate.h"
#include "attention/exact/attention.h"
#include "ops/attention/attention_call.h"
#include "ops/native.h"
#include "ops/op_list.h"
#include "tensor/visit.h"

namespace loipe::ops {

namespace {

namespace exact = loipe::attention;
namespace approximate = loipe::attention::approximate;
using approximate::HeadReport;

/// Operands, result and attributes of one node as the kernels want them.
template <class T>
class Arguments {
 public:
  explicit Arguments(const NativeContext& c) : context_(c), call_(AttentionCall::of(c.types, c.attributes)) {}

  const AttentionCall& call() const { return call_; }
  std::size_t first_direction() const { return call_.primal_count + 1; }

  exact::Problem<T> problem() const {
    exact::Problem<T> problem{shape(call_), call_.scale, {}, queries(0, 0), keys(1, 0), keys(2, 0)};
    problem.mask.is_causal = call_.is_causal;
    problem.mask.window = call_.window;
    if (call_.mask) {
      const NativeOperand& mask = context_.operands[*call_.mask];
      problem.mask.key_mask = reinterpret_cast<const std::uint8_t*>(mask.data);
      problem.mask.key_mask_head_stride = context_.types[*call_.mask]->shape[0] == 1 ? 0 : call_.keys;
    }
    if (call_.bias) {
      const Shape& s = call_.bias_shape;
      problem.mask.bias = {data(*call_.bias), s[0] * s[1] == 1 ? 0 : s[2] * s[3], s[2] == 1 ? 0 : s[3], 1};
    }
    return problem;
  }

  static exact::Shape shape(const AttentionCall& call) {
    return {call.heads * call.groups, call.heads, call.queries, call.keys, call.head_size, call.value_size};
  }

  /// Operand [heads, groups, queries, size], behind an axis of directions where it has one.
  exact::Rows<const T> queries(std::size_t operand, std::int64_t direction) const {
    const NativeOperand& at = context_.operands[operand];
    const std::size_t axis = at.strides.size() - 4;
    return {data(operand) + (axis == 1 ? direction * at.strides[0] : 0),
            head_stride(at.strides.subspan(axis)), at.strides[axis + 2], at.strides[axis + 3]};
  }
  /// Operand [heads, keys, size], likewise.
  exact::Rows<const T> keys(std::size_t operand, std::int64_t direction) const {
    const NativeOperand& at = context_.operands[operand];
    const std::size_t axis = at.strides.size() - 3;
    return {data(operand) + (axis == 1 ? direction * at.strides[0] : 0), at.strides[axis],
            at.strides[axis + 1], at.strides[axis + 2]};
  }
  /// The last column of an operand in the shape of the result of attention.
  exact::Rows<const T> last_column(std::size_t operand, std::int64_t direction) const {
    exact::Rows<const T> rows = queries(operand, direction);
    rows.data += call_.value_size * rows.column_stride;
    return rows;
  }

  exact::Saved<T> saved() const {
    if (!has_saved()) return {};
    return {queries(call_.primal_count, 0), saved_statistics()};
  }
  approximate::Saved<T> approximate_saved() const {
    if (!has_saved()) return {};
    return {queries(call_.primal_count, 0),
            last_column(call_.primal_count, 0),
            saved_statistics(),
            {reinterpret_cast<const HeadReport*>(context_.operands[call_.primal_count].beside), heads()}};
  }
  exact::Cotangents<T> cotangents(std::size_t operand, std::int64_t direction) const {
    return {queries(operand, direction), last_column(operand, direction)};
  }
  exact::InputTangents<T> tangents(std::size_t first, std::string_view along, std::int64_t direction) const {
    exact::InputTangents<T> result{};
    for (std::size_t k = 0; k < along.size(); ++k) {
      if (along[k] == 'q') result.q = queries(first + k, direction);
      if (along[k] == 'k') result.k = keys(first + k, direction);
      if (along[k] == 'v') result.v = keys(first + k, direction);
    }
    return result;
  }

  /// The result [heads, groups, queries, value size + 1], behind directions where it has them.
  exact::Rows<T> result_rows(std::int64_t direction) const {
    const std::int64_t columns = call_.value_size + 1;
    return exact::contiguous(result() + direction * element_count(call_.result()), call_.queries, columns);
  }
  exact::Rows<T> lse_column(exact::Rows<T> rows) const {
    rows.data += call_.value_size;
    return rows;
  }
  /// Packed derivatives by q, k, v.
  exact::InputCotangents<T> packed(std::int64_t direction) const {
    T* q = result() + direction * call_.elements("qkv");
    T* k = q + call_.elements("q");
    return {exact::contiguous(q, call_.queries, call_.head_size),
            exact::contiguous(k, call_.keys, call_.head_size),
            exact::contiguous(k + call_.elements("k"), call_.keys, call_.value_size),
            {}};
  }
  std::int64_t directions() const { return context_.type.shape[0]; }

  /// What is left beside the result of this node; empty where nobody will read it.
  std::span<HeadReport> reports() const {
    return {reinterpret_cast<HeadReport*>(context_.beside), context_.beside == nullptr ? 0 : heads()};
  }
  exact::Rows<T> statistics() const {
    if (context_.beside == nullptr) return {};
    return exact::contiguous(reinterpret_cast<T*>(reports().data() + heads()), call_.queries,
                             exact::kStatistics);
  }

 private:
  std::size_t heads() const { return static_cast<std::size_t>(call_.heads); }
  bool has_saved() const { return context_.operands[call_.primal_count].beside != nullptr; }
  exact::Rows<const T> saved_statistics() const {
    const auto* reports = reinterpret_cast<const HeadReport*>(context_.operands[call_.primal_count].beside);
    return exact::contiguous(reinterpret_cast<const T*>(reports + heads()), call_.queries,
                             exact::kStatistics);
  }
  const T* data(std::size_t operand) const {
    return reinterpret_cast<const T*>(context_.operands[operand].data);
  }
  T* result() const { return reinterpret_cast<T*>(context_.result); }
  std::int64_t head_stride(std::span<const std::int64_t> strides) const {
    return call_.groups > 1 ? strides[1] : strides[0];
  }

  const NativeContext& context_;
  AttentionCall call_;
};

AttentionCall call_of(const CostContext& c) { return AttentionCall::of(c.operands, c.attributes); }

std::string letters(const CostContext& c, std::string_view name) { return c.attributes.text(name); }

/// A bias is for one head or for all.
bool covers_attention(const CostContext& c) {
  const AttentionCall call = call_of(c);
  if (!call.bias) return true;
  const std::int64_t heads = call.bias_shape[0] * call.bias_shape[1];
  return heads == 1 || heads == call.heads * call.groups;
}
/// Tangents and derivatives of the bias are rare, and as large as the matrix of logits.
bool covers_vjp(const CostContext& c) { return covers_attention(c) && letters(c, "by") == "qkv"; }
bool covers_jvp(const CostContext& c) { return covers_attention(c) && letters(c, "along") != "b"; }
bool covers_vjp_jvp(const CostContext& c) { return covers_vjp(c) && covers_jvp(c); }

/// Heads of queries that read one head of keys must follow one another as heads do; a mask
/// and a bias have no strides.
bool takes_strides(const CostContext& c, std::size_t operand, std::span<const std::int64_t> strides) {
  const AttentionCall call = call_of(c);
  if (operand >= 3 && operand < call.primal_count) return false;
  const bool has_groups = strides.size() >= 4 && operand != 1 && operand != 2 &&
                          c.operand(operand).shape.size() >= strides.size();
  if (!has_groups || call.groups == 1 || call.heads == 1) return true;
  const std::size_t axis = strides.size() - 4;
  return strides[axis] == call.groups * strides[axis + 1];
}

/// A problem of these extents without data, for the size of the workspace.
template <class T>
exact::Problem<T> extents_of(const CostContext& c) {
  const AttentionCall call = call_of(c);
  exact::Problem<T> problem{Arguments<T>::shape(call), call.scale, {}, {}, {}, {}};
  problem.mask.is_causal = call.is_causal;
  problem.mask.window = call.window;
  return problem;
}

template <class Size>
std::size_t workspace(const CostContext& c, Size size) {
  return visit_floating(c.type.dtype, [&]<class T>(T) { return size(extents_of<T>(c)); });
}

std::size_t forward_workspace(const CostContext& c, int threads) {
  return workspace(c, [&](const auto& problem) {
    const AttentionCall call = call_of(c);
    return call.approximations.empty()
               ? exact::forward_workspace(problem, threads)
               : approximate::forward_workspace(problem, call.approximations, threads);
  });
}
std::size_t vjp_workspace(const CostContext& c, int threads) {
  return workspace(c, [&](const auto& problem) {
    const AttentionCall call = call_of(c);
    return call.approximations.empty() ? exact::vjp_workspace(problem, threads)
                                       : approximate::vjp_workspace(problem, call.approximations, threads);
  });
}

std::size_t report_bytes(const CostContext& c) {
  return static_cast<std::size_t>(call_of(c).heads) * sizeof(HeadReport);
}
std::size_t beside_attention_bytes(const CostContext& c) {
  const AttentionCall call = call_of(c);
  return report_bytes(c) +
         static_cast<std::size_t>(call.heads * call.groups * call.queries * exact::kStatistics) *
             size_of(call.dtype);
}
std::size_t nothing_beside(const CostContext&) { return 0; }

void run_attention(const NativeContext& c) {
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const Arguments<T> a(c);
    const exact::Rows<T> rows = a.result_rows(0);
    if (!a.call().approximations.empty())
      return approximate::forward<T>(a.problem(), a.call().approximations,
                                     {rows, a.lse_column(rows), a.statistics(), a.reports()}, c.parallel,
                                     c.workspace);
    std::ranges::fill(a.reports(), approximate::exact_report());
    exact::forward<T>(a.problem(), {rows, a.lse_column(rows), a.statistics()}, c.parallel, c.workspace);
  });
}

/// Of several directions the report is that of the last.
void run_vjp(const NativeContext& c) {
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const Arguments<T> a(c);
    std::ranges::fill(a.reports(), approximate::exact_report());
    for (std::int64_t l = 0; l < a.directions(); ++l) {
      const exact::Cotangents<T> cotangents = a.cotangents(a.first_direction(), l);
      if (a.call().approximations.empty())
        exact::vjp(a.problem(), a.saved(), cotangents, a.packed(l), c.parallel, c.workspace);
      else
        approximate::vjp(a.problem(), a.call().approximations, a.approximate_saved(), cotangents, a.packed(l),
                         a.reports(), c.parallel, c.workspace);
    }
  });
}

void run_report(const NativeContext& c) {
  const auto heads = static_cast<std::size_t>(c.type.shape[0]);
  const auto* const reports = reinterpret_cast<const HeadReport*>(c.operands[0].beside);
  visit_floating(c.type.dtype, [&]<class T>(T) {
    auto* to = reinterpret_cast<T*>(c.result);
    for (std::size_t head = 0; head < heads; ++head) {
      const HeadReport report = reports == nullptr ? approximate::exact_report() : reports[head];
      for (double number : std::bit_cast<std::array<double, approximate::kReportColumns>>(report))
        *to++ = static_cast<T>(number);
    }
  });
}

void run_jvp(const NativeContext& c) {
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const Arguments<T> a(c);
    const std::string along = c.attributes.text("along");
    for (std::int64_t l = 0; l < a.directions(); ++l) {
      const exact::Rows<T> rows = a.result_rows(l);
      exact::jvp(a.problem(), a.tangents(a.first_direction(), along, l),
                 exact::Tangents<T>{rows, a.lse_column(rows)}, c.parallel, c.workspace);
    }
  });
}

void run_vjp_jvp(const NativeContext& c) {
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const Arguments<T> a(c);
    const std::string along = c.attributes.text("along");
    for (std::int64_t l = 0; l < a.directions(); ++l)
      exact::vjp_jvp(a.problem(), a.cotangents(a.first_direction(), l),
                     a.tangents(a.first_direction() + 1, along, l), exact::Cotangents<T>{}, a.packed(l),
                     c.parallel, c.workspace);
  });
}

constexpr std::array kNative{
    NativeEvaluation{&op_attention, covers_attention, takes_strides, forward_workspace,
                     beside_attention_bytes, run_attention},
    NativeEvaluation{&op_attention_vjp, covers_vjp, takes_strides, vjp_workspace, report_bytes, run_vjp},
    NativeEvaluation{&op_attention_report, [](const CostContext&) { return true; },
                     [](const CostContext&, std::size_t, std::span<const std::int64_t>) { return true; },
                     [](const CostContext&, int) { return std::size_t{0}; }, nothing_beside, run_report},
    NativeEvaluation{&op_attention_jvp, covers_jvp, takes_strides,
                     [](const CostContext& c, int threads) {
                       return workspace(
                           c, [&](const auto& problem) { return exact::jvp_workspace(problem, threads); });
                     },
                     nothing_beside, run_jvp},
    NativeEvaluation{&op_attention_vjp_jvp, covers_vjp_jvp, takes_strides,
                     [](const CostContext& c, int threads) {
                       return workspace(c, [&](const auto& problem) {
                         return exact::vjp_jvp_workspace(problem, threads);
                       });
                     },
                     nothing_beside, run_vjp_jvp}};

}  // namespace

const NativeEvaluation* native_evaluation(const OpDef& op) {
  for (const NativeEvaluation& native : kNative)
    if (native.op == &op) return &native;
  return nullptr;
}

}  // namespace loipe::ops
