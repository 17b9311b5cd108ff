// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_backend.h"

#include <algorithm>

#include "backends/cpu/executable.h"
#include "backends/cpu/lowering/lowering.h"
#include "backends/cpu/simd_level.h"
#include "backends/cpu/threads.h"
#ifdef LOIPE_LLVM
#include "backends/llvm/batch_executable.h"
#endif

namespace loipe {

namespace {

/// Smaller tiles until a run needs at most `limit` bytes (0: no limit), then the same with fewer threads,
/// each of which has a tile of its own. If none fits, the one that needs least. Results are the same
/// whichever it is.
std::unique_ptr<Executable> compile_within(const Program& program, int threads, std::size_t limit) {
  constexpr std::int64_t kSmallestTile = 2048;
  std::unique_ptr<Executable> least;
  while (true) {
    for (cpu::TilingOptions tiling; tiling.tile_bytes >= kSmallestTile; tiling.tile_bytes /= 4) {
      auto executable = std::make_unique<cpu::CpuExecutable>(
          program, cpu::lower(program, cpu::kernels_of_this_cpu(), tiling), threads);
      if (limit == 0 || executable->peak_bytes() <= limit) return executable;
      if (!least || executable->peak_bytes() < least->peak_bytes()) least = std::move(executable);
    }
    if (threads == 1) return least;
    threads = (threads + 1) / 2;
  }
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "jit"; }
  std::string_view summary() const override {
    return "native: fused elementwise loops and matrix products for the running CPU, several threads";
  }
  /// Ops without a kernel run by their own reference evaluation, so all programs are supported.
  std::vector<std::string> reasons_against(const Program&) const override { return {}; }
#ifdef LOIPE_LLVM
  bool vectorises_examples(const Program& program) const override { return runs_as_scalars(program); }
#endif

 private:
  std::unique_ptr<Executable> compile_supported(const Program& program,
                                                const BackendOptions& options) const override {
    constexpr int kMostThreads = 256;
    const int threads =
        std::min(options.threads > 0 ? options.threads : cpu::available_threads(), kMostThreads);
#ifdef LOIPE_LLVM
    BackendOptions batch_options = options;
    batch_options.threads = threads;
    if (options.batch > 1)
      if (auto executable = compile_for_batches(program, batch_options)) return executable;
#endif
    const std::size_t left =
        options.memory_limit > options.reserved_bytes ? options.memory_limit - options.reserved_bytes : 1;
    return compile_within(program, threads, options.memory_limit == 0 ? 0 : left);
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

}  // namespace loipe
