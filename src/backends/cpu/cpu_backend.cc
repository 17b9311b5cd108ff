// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/executable.h"
#include "backends/cpu/lowering/lowering.h"
#include "backends/cpu/lowering/pass_log.h"
#include "backends/cpu/simd_level.h"
#include "backends/cpu/threads.h"
#ifdef LOIPE_LLVM
#include "backends/llvm/batch_executable.h"
#endif

namespace loipe {

namespace {

/// What a plan may be tried with, best first: the usual tiles, smaller ones, and none, since tiles that cut
/// much can need more than they save.
std::vector<cpu::TilingOptions> tilings(const DisabledPasses& disabled) {
  constexpr std::int64_t kSmallestTile = 2048, kNoTiles = std::int64_t{1} << 50;
  std::vector<cpu::TilingOptions> all;
  if (disabled.contains(BackendPass::tiling)) return {{}};
  for (cpu::TilingOptions tiling{.tile_bytes = cpu::half_second_cache()}; tiling.tile_bytes >= kSmallestTile;
       tiling.tile_bytes /= 4)
    all.push_back(tiling);
  all.push_back({.tile_bytes = kNoTiles, .is_parallel = false});
  return all;
}

/// A plan and, where somebody wants to know, how it came about.
struct Attempt {
  cpu::Plan plan;
  cpu::PassLog log;
};

/// The first plan by which a run needs at most `limit` bytes (0: no limit), on fewer threads if need be, each
/// of which has a tile of its own. If there is none, the one that needs least. Results
/// are the same whichever it is.
std::unique_ptr<Executable> compile_within(const Program& program, int threads, std::size_t limit,
                                           const BackendOptions& options) {
  std::vector<Attempt> attempts;
  const auto executable = [&](Attempt& attempt) {
    if (options.report)
      for (const BackendPassReport& report : attempt.log.reports(options.disabled)) options.report(report);
    return std::make_unique<cpu::CpuExecutable>(program, std::move(attempt.plan), threads);
  };
  const auto needed = [&](const Attempt& attempt) {
    return cpu::CpuExecutable::peak_bytes_of(program, attempt.plan, threads);
  };
  for (const cpu::TilingOptions& tiling : tilings(options.disabled)) {
    Attempt& attempt = attempts.emplace_back();
    attempt.plan = cpu::lower(program, cpu::kernels_of_this_cpu(),
                              {tiling, options.disabled, options.report ? &attempt.log : nullptr, threads});
    if (limit == 0 || needed(attempt) <= limit) return executable(attempt);
  }
  while (threads > 1) {
    threads = (threads + 1) / 2;
    for (Attempt& attempt : attempts)
      if (needed(attempt) <= limit) return executable(attempt);
  }
  return executable(*std::ranges::min_element(attempts, {}, needed));
}

#ifdef LOIPE_LLVM
std::unique_ptr<Executable> compile_vectors(const Program& program, const BackendOptions& options) {
  cpu::PassLog log;
  std::unique_ptr<Executable> executable;
  {
    const cpu::PassLog::Scope scope(&log, BackendPass::example_vectors);
    executable = compile_for_batches(program, options);
  }
  log.count(BackendPass::example_vectors, 1, executable ? 1 : 0);
  if (executable && options.report) options.report(log.reports(options.disabled).front());
  return executable;
}
#endif

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "jit"; }
  std::string_view summary() const override {
    return "native: fused elementwise loops and matrix products for the running CPU, several threads";
  }
  /// Ops without a kernel run by their own reference evaluation, so all programs are supported.
  std::vector<std::string> reasons_against(const Program&) const override { return {}; }
#ifdef LOIPE_LLVM
  bool vectorises_examples(const Program& program, const BackendOptions& options) const override {
    return !options.disabled.contains(BackendPass::example_vectors) && runs_as_scalars(program);
  }
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
    if (options.batch > 1 && !options.disabled.contains(BackendPass::example_vectors))
      if (auto executable = compile_vectors(program, batch_options)) return executable;
#endif
    return compile_within(program, threads, options.bytes_left(), options);
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

}  // namespace loipe
