// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/reference_step.h"

#include <algorithm>

namespace loipe::cpu {

namespace {

class ReferenceStep final : public Step {
 public:
  ReferenceStep(const OpDef& op, Attributes attributes, std::vector<StridedView> operands,
                const StridedView& out)
      : op_(op),
        attributes_(std::move(attributes)),
        operands_(std::move(operands)),
        out_(out),
        type_{out.dtype, out.shape} {}

  void run(const RunContext& context) const override {
    std::vector<Tensor> tensors;
    for (const StridedView& operand : operands_) {
      tensors.emplace_back(TensorType{operand.dtype, operand.shape});
      const std::span<std::byte> bytes = tensors.back().bytes();
      std::copy_n(address(context, operand), bytes.size(), bytes.data());
    }
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    const Tensor result = op_.evaluate.value({pointers, attributes_, type_});
    std::ranges::copy(result.bytes(), address(context, out_));
  }

  /// Copies of the operands and the result; what the evaluation needs beside is not known.
  std::size_t heap_bytes() const override {
    std::size_t bytes = type_.byte_size();
    for (const StridedView& operand : operands_)
      bytes += TensorType{operand.dtype, operand.shape}.byte_size();
    return bytes;
  }

 private:
  static std::byte* address(const RunContext& context, const StridedView& view) {
    return context.bases[view.buffer] + static_cast<std::size_t>(view.offset) * size_of(view.dtype);
  }

  const OpDef& op_;
  Attributes attributes_;
  std::vector<StridedView> operands_;  ///< contiguous
  StridedView out_;
  TensorType type_;
};

}  // namespace

std::unique_ptr<Step> make_reference_step(const OpDef& op, Attributes attributes,
                                          std::vector<StridedView> operands, const StridedView& out) {
  return std::make_unique<ReferenceStep>(op, std::move(attributes), std::move(operands), out);
}

}  // namespace loipe::cpu
