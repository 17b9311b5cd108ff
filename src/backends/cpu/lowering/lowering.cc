// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/lowering.h"

#include "backends/cpu/lowering/op_lowerings.h"
#include "backends/cpu/steps/copy_step.h"
#include "ir/op_def.h"

namespace loipe::cpu {

namespace {

/// Lowered as a view of its operand, where that is possible.
bool may_be_view(const Program& program, Value node) {
  const std::string_view op = program.op(node).name.value;
  if (op == "einsum") return program.operands(node).size() == 1;
  return op == "transpose" || op == "reshape" || op == "broadcast_in_dim" || op == "slice" || op == "gather";
}

/// The space of the group that a node may join: a reduction ends that of its operand.
const Shape& space_of(const Program& program, Value node) {
  const bool reduces = std::string_view(program.op(node).name.value).starts_with("reduce_");
  return program.shape(reduces ? program.operands(node)[0] : node);
}

/// What others read of regions. A view is not written for them, but made again around the region, of the
/// value that it shows: otherwise the strides in which a sum reads it, and with them the order of the sum,
/// would depend on the tiling.
Leaving values_that_leave_their_region(const Program& program, const Tiling& tiling) {
  Leaving leaving{std::vector<bool>(program.size(), false), std::vector<bool>(program.size(), false)};
  if (tiling.regions.empty()) return leaving;
  std::vector<bool> is_read(program.size(), false);
  for (Value node : tiling.order)
    for (Value operand : program.operands(node))
      if (tiling.region_of[operand.index] != tiling.region_of[node.index]) is_read[operand.index] = true;
  for (auto node = tiling.order.rbegin(); node != tiling.order.rend(); ++node) {
    if (!is_read[node->index]) continue;
    leaving.is_written[node->index] = true;
    const std::int32_t region = tiling.region_of[node->index];
    if (region == Tiling::kNone || !may_be_view(program, *node)) continue;
    leaving.is_written[node->index] = false;
    leaving.is_made_again[node->index] = true;
    for (Value operand : program.operands(*node))
      if (tiling.region_of[operand.index] == region) is_read[operand.index] = true;
  }
  for (Value output : program.outputs())
    if (!leaving.is_made_again[output.index]) leaving.is_written[output.index] = true;
  return leaving;
}

}  // namespace

Plan lower(const Program& program, const KernelTable& kernels, const LoweringOptions& options) {
  return Lowering(program, kernels, options, BorderViews::contiguous(program)).run();
}

BorderViews BorderViews::contiguous(const Program& program) {
  BorderViews views;
  for (Value v : program.arguments())
    views.arguments.push_back(contiguous_view(0, program.type(v).dtype, program.shape(v)));
  for (Value v : program.outputs())
    views.outputs.push_back(contiguous_view(0, program.type(v).dtype, program.shape(v)));
  return views;
}

Lowering::Lowering(const Program& program, const KernelTable& kernels, const LoweringOptions& options,
                   BorderViews border, std::shared_ptr<KernelCollector> collector, TileSurroundings* around)
    : program_(program),
      kernels_(kernels),
      options_(options),
      border_(std::move(border)),
      compiles_kernels_(collector == nullptr),
      collector_(collector ? std::move(collector)
                           : std::make_shared<KernelCollector>(kernels, does(BackendPass::kernels), log())),
      uses_(program.size(), 0),
      views_(program.size()),
      is_defined_(program.size(), false),
      around_(around),
      fusion_(*this),
      epilogues_(*this) {}

Plan Lowering::run() {
  count_uses();
  for (std::size_t i = 0; i < program_.arguments().size(); ++i) {
    const Value argument = program_.arguments()[i];
    StridedView& view = border_.arguments[i];
    view.buffer = new_buffer(BufferKind::argument, program_.type(argument).byte_size(), i);
    define(argument, view);
  }
  const Tiling tiling = regions();
  const Leaving leaving = values_that_leave_their_region(program_, tiling);
  for (Value node : tiling.order) {
    const std::int32_t region = tiling.region_of[node.index];
    if (region == Tiling::kNone) {
      if (uses_[node.index] > 0 && !is_defined_[node.index]) lower_node(node);
    } else if (const Region& r = tiling.regions[static_cast<std::size_t>(region)]; node == r.nodes.front()) {
      lower_region(r, leaving);
    }
  }
  write_outputs();
  if (compiles_kernels_) collector_->compile();
  place_buffers();
  std::erase(plan_.steps, nullptr);
  return std::move(plan_);
}

Tiling Lowering::regions() const {
  const PassLog::Scope scope(log(), BackendPass::tiling);
  if (!does(BackendPass::tiling)) return one_by_one(program_);
  Tiling tiling = find_regions(program_, options_.tiling);
  if (log() == nullptr) return tiling;
  for (const Region& region : tiling.regions) {
    log()->count(BackendPass::tiling, static_cast<std::int64_t>(region.nodes.size()), 1);
    log()->write(BackendPass::tiling, to_text(program_, region));
  }
  return tiling;
}

void Lowering::place_buffers() {
  const PassLog::Scope scope(log(), BackendPass::buffer_reuse);
  plan_.arena_bytes = plan_arena(plan_.buffers, does(BackendPass::buffer_reuse));
  if (log() == nullptr) return;
  std::int64_t together = 0;
  for (const Buffer& buffer : plan_.buffers) {
    if (buffer.kind != BufferKind::arena || buffer.first_step < 0) continue;
    together += static_cast<std::int64_t>(whole_lines(buffer.bytes));
    log()->write(BackendPass::buffer_reuse, to_text(buffer));
  }
  log()->count(BackendPass::buffer_reuse, together, static_cast<std::int64_t>(plan_.arena_bytes));
}

/// Uses by nodes that lead to an output; a value without any is never computed.
void Lowering::count_uses() {
  for (Value output : program_.outputs()) ++uses_[output.index];
  for (std::uint32_t i = static_cast<std::uint32_t>(program_.size()); i-- > 0;)
    if (uses_[i] > 0)
      for (Value operand : program_.operands(Value{i})) ++uses_[operand.index];
}

void Lowering::lower_node(Value node) {
  fusion_.before(space_of(program_, node));
  const OpLowering lowering = lowering_of(program_.op(node));
  if (lowering.adds_to_group) lowering.function(*this, node);
  else lower_in_memory(node, lowering.function);
  if (!does(BackendPass::fusion)) fusion_.close_all();
}

void Lowering::lower_in_memory(Value node, void (*function)(Lowering&, Value)) {
  for (Value operand : program_.operands(node)) fusion_.materialise(operand);
  function(*this, node);
  for (Value operand : program_.operands(node)) {
    consume_value(operand);
    consume_buffer(views_[operand.index].buffer);
  }
}

const StridedView& Lowering::view(Value v) {
  fusion_.materialise(v);
  return views_[v.index];
}

StridedView Lowering::contiguous(Value v) {
  const StridedView& from = view(v);
  if (from.is_contiguous()) return from;
  StridedView copy = temporary(from.dtype, from.shape);
  emit_copy(from, copy);
  return copy;
}

void Lowering::define(Value v, StridedView view) {
  pending_[view.buffer] += uses_[v.index];
  views_[v.index] = std::move(view);
  is_defined_[v.index] = true;
}

StridedView Lowering::define_new(Value v) {
  const TensorType& type = program_.type(v);
  StridedView result = temporary(type.dtype, type.shape);
  define(v, result);
  return result;
}

StridedView Lowering::temporary(DType dtype, const Shape& shape) {
  return contiguous_view(new_buffer(BufferKind::arena, TensorType{dtype, shape}.byte_size()), dtype, shape);
}

StridedView Lowering::constant(std::shared_ptr<const Tensor> tensor) {
  const BufferId buffer =
      new_buffer(BufferKind::constant, tensor->type().byte_size(), plan_.constants.size());
  const StridedView view = contiguous_view(buffer, tensor->dtype(), tensor->shape());
  plan_.constants.push_back(std::move(tensor));
  return view;
}

bool Lowering::may_overwrite(Value v) {
  if (!does(BackendPass::buffer_reuse)) return false;
  const StridedView& at = view(v);
  const Buffer& buffer = plan_.buffers[at.buffer];
  return buffer.kind == BufferKind::arena && pending_[at.buffer] == 1 && at.is_contiguous() &&
         at.offset == 0 && program_.type(v).byte_size() == buffer.bytes;
}

BufferId Lowering::new_buffer(BufferKind kind, std::size_t bytes, std::size_t position) {
  plan_.buffers.push_back({kind, bytes, position});
  pending_.push_back(0);
  last_write_.push_back(-1);
  return static_cast<BufferId>(plan_.buffers.size() - 1);
}

void Lowering::emit(std::unique_ptr<const Step> step, std::span<const StridedView> reads,
                    std::span<const StridedView> writes) {
  for (auto views : {reads, writes})
    for (const StridedView& view : views) touch(view.buffer);
  for (const StridedView& view : writes)
    last_write_[view.buffer] = static_cast<std::int32_t>(plan_.steps.size());
  plan_.steps.push_back(std::move(step));
}

void Lowering::touch(BufferId buffer) {
  const auto now = static_cast<std::int32_t>(plan_.steps.size());
  Buffer& used = plan_.buffers[buffer];
  if (used.first_step < 0) used.first_step = now;
  used.last_step = now;
}

bool Lowering::is_unread(BufferId buffer, std::size_t step, std::uint32_t uses) const {
  const Buffer& used = plan_.buffers[buffer];
  return used.kind == BufferKind::arena && pending_[buffer] == uses &&
         used.first_step == static_cast<std::int32_t>(step) && used.last_step == used.first_step;
}

bool Lowering::is_written_after(BufferId buffer, std::size_t step) const {
  return last_write_[buffer] > static_cast<std::int32_t>(step);
}

/// Its place stays until the plan is ready, so that the numbers of the others do.
void Lowering::drop_step(std::size_t step, BufferId written) {
  plan_.steps[step].reset();
  plan_.buffers[written].first_step = plan_.buffers[written].last_step = -1;
}

void Lowering::emit_copy(const StridedView& from, const StridedView& to) {
  emit(make_copy_step(from, to, kernels_), {from}, to);
}

void Lowering::note_layout(const StridedView& from, const StridedView& to) {
  if (log() == nullptr) return;
  log()->count(BackendPass::layout, 1, 1);
  log()->write(BackendPass::layout, to_text(from) + " copied to " + to_text(to) + "\n");
}

/// An intermediate that is an output as a whole becomes the output's buffer, so the
/// step that computes it writes there; anything else is copied.
void Lowering::write_outputs() {
  fusion_.close_all();
  for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
    const Value output = program_.outputs()[i];
    const StridedView& from = views_[output.index];
    const TensorType& type = program_.type(output);
    Buffer& buffer = plan_.buffers[from.buffer];
    StridedView& to = border_.outputs[i];
    if (buffer.kind == BufferKind::arena && from.offset == 0 && from.is_contiguous() && to.is_contiguous() &&
        buffer.bytes == type.byte_size()) {
      buffer.kind = BufferKind::output;
      buffer.position = i;
    } else {
      to.buffer = new_buffer(BufferKind::output, type.byte_size(), i);
      emit_copy(views_[output.index], to);
    }
  }
}

}  // namespace loipe::cpu
