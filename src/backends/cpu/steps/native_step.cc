// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/native_step.h"

#include <algorithm>
#include <array>

#include "backends/cpu/threads.h"
#include "base/check.h"

namespace loipe::cpu {

namespace {

class NativeStep final : public Step {
 public:
  explicit NativeStep(NativeCall call) : call_(std::move(call)), type_{call_.out.dtype, call_.out.shape} {
    for (const StridedView& operand : call_.operands) types_.push_back({operand.dtype, operand.shape});
    for (const TensorType& type : types_) type_pointers_.push_back(&type);
    workspace_bytes_ =
        call_.native->workspace_bytes({type_pointers_, call_.attributes, type_}, call_.threads);
  }

  void run(const RunContext& context) const override {
    // As many as a node has: attention and its derivatives at most 12.
    std::array<ops::NativeOperand, 16> operands;
    for (std::size_t i = 0; i < call_.operands.size(); ++i) {
      const auto& beside = call_.operands_beside[i];
      operands[i] = {address(context, call_.operands[i]), call_.operands[i].strides,
                     beside ? address(context, *beside) : nullptr};
    }
    int threads = std::min(context.threads, call_.threads);
    const auto run = [](void* self, std::int64_t tasks, void (*body)(void*, std::int64_t, int),
                        void* closure) {
      parallel_for(*static_cast<int*>(self), tasks,
                   [&](std::int64_t task, int thread) { body(closure, task, thread); });
    };
    call_.native->run({std::span(operands).first(call_.operands.size()),
                       type_pointers_,
                       call_.attributes,
                       type_,
                       address(context, call_.out),
                       call_.beside ? address(context, *call_.beside) : nullptr,
                       {context.shared, workspace_bytes_},
                       {threads, run, &threads}});
  }

  std::size_t shared_bytes() const override { return workspace_bytes_; }

 private:
  static std::byte* address(const RunContext& context, const StridedView& view) {
    return context.bases[view.buffer] +
           static_cast<std::ptrdiff_t>(view.offset) * static_cast<std::ptrdiff_t>(size_of(view.dtype));
  }

  NativeCall call_;
  std::vector<TensorType> types_;
  std::vector<const TensorType*> type_pointers_;
  TensorType type_;
  std::size_t workspace_bytes_;
};

}  // namespace

std::unique_ptr<Step> make_native_step(NativeCall call) {
  require(call.operands.size() <= 16, "a native evaluation has too many operands");
  return std::make_unique<NativeStep>(std::move(call));
}

}  // namespace loipe::cpu
