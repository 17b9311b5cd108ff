// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/batch_executable.h"

#include "backends/llvm/batch_kernel.h"
#include "backends/scalar/scalarize.h"

namespace loipe {

namespace {

/// Above this code no longer fits the caches and compiling takes seconds; programs of
/// large tensors are better off with loops.
constexpr std::int64_t kLargestVectorised = 30'000;

class BatchExecutable final : public Executable {
 public:
  BatchExecutable(const Program& program, const BackendOptions& options)
      : Executable(program),
        kernel_(program, {.threads = options.threads, .use_code_cache = options.use_code_cache}),
        none_shared_(argument_types().size(), false) {
    for (const TensorType& type : argument_types()) example_bytes_ += type.byte_size();
    for (const TensorType& type : output_types()) example_bytes_ += type.byte_size();
  }

  bool vectorises_examples() const override { return true; }
  std::size_t peak_bytes() const override { return example_bytes_ + kernel_.workspace_bytes(); }

 private:
  void run_checked(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const override {
    kernel_.run({1, arguments, none_shared_, outputs, {.argument_stride = 1, .result_stride = 1}});
  }
  void run_batch_checked(const BatchRun& run) const override { kernel_.run(run); }

  jit::BatchKernel kernel_;
  std::vector<bool> none_shared_;
  std::size_t example_bytes_ = 0;
};

}  // namespace

bool runs_as_scalars(const Program& program) {
  return scalar::reasons_against(program, kLargestVectorised).empty();
}

std::unique_ptr<Executable> compile_for_batches(const Program& program, const BackendOptions& options) {
  if (!runs_as_scalars(program)) return nullptr;
  return std::make_unique<BatchExecutable>(program, options);
}

}  // namespace loipe
