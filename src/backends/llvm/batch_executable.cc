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
        example_bytes_(total_bytes(argument_types()) + total_bytes(output_types())),
        kernel_(program, {.threads = options.threads,
                          .use_code_cache = options.use_code_cache,
                          .most_workspace_bytes = most_workspace_bytes(options)}),
        none_shared_(argument_types().size(), false) {}

  bool vectorises_examples() const override { return true; }
  std::size_t peak_bytes() const override { return example_bytes_ + kernel_.workspace_bytes(); }

 private:
  static std::size_t total_bytes(std::span<const TensorType> types) {
    std::size_t total = 0;
    for (const TensorType& type : types) total += type.byte_size();
    return total;
  }
  std::size_t most_workspace_bytes(const BackendOptions& options) const {
    const std::size_t left = options.bytes_left();
    return left == 0 ? 0 : left > example_bytes_ ? left - example_bytes_ : 1;
  }
  void run_checked(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const override {
    kernel_.run({1, arguments, none_shared_, outputs, {.argument_stride = 1, .result_stride = 1}});
  }
  void run_batch_checked(const BatchRun& run) const override { kernel_.run(run); }

  std::size_t example_bytes_;
  jit::BatchKernel kernel_;
  std::vector<bool> none_shared_;
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
