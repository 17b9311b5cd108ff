// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/batch_kernel.h"

#include <llvm/IR/Module.h>

#include <algorithm>

#include "backends/cpu/threads.h"
#include "backends/llvm/tile_runner.h"
#include "backends/scalar/scalarize.h"
#include "base/text.h"

namespace loipe::jit {

namespace {

/// Scalar nodes; the code generator's full level takes about 60 microseconds for each.
constexpr std::size_t kLargestFull = 3'000;

constexpr std::size_t kAlignment = 64;

/// The workspaces of all threads of one run, one after the other.
class Workspaces {
 public:
  Workspaces(const TilePlan& plan, int threads)
      : bytes_(plan.workspace_bytes),
        memory_(static_cast<std::byte*>(
            ::operator new(bytes_* static_cast<std::size_t>(threads), std::align_val_t{kAlignment}))) {
    for (int thread = 0; thread < threads; ++thread) prepare_workspace(plan, of(thread));
  }
  std::byte* of(int thread) const { return memory_.get() + bytes_ * static_cast<std::size_t>(thread); }

 private:
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, std::align_val_t{kAlignment}); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Delete> memory_;
};

std::string transposition_name(Direction direction, std::size_t elements) {
  return (direction == Direction::rows_to_examples ? "loipe_to_examples_" : "loipe_to_rows_") +
         std::to_string(elements);
}

/// Number of elements of each argument or output.
std::vector<std::size_t> sizes(const std::vector<std::size_t>& first) {
  std::vector<std::size_t> result;
  for (std::size_t k = 0; k + 1 < first.size(); ++k) result.push_back(first[k + 1] - first[k]);
  return result;
}

/// About the cycles of one tile: what divides or calls takes longer, and a vector is
/// written to the second cache at half a line a cycle.
std::int64_t estimated_cycles(const scalar::Program& program) {
  std::int64_t cycles = 2 * static_cast<std::int64_t>(program.stores.size());
  for (const scalar::Node& node : program.nodes)
    cycles += scalar::is_function(node.op)                                ? 40
              : node.op == scalar::Op::div || node.op == scalar::Op::sqrt ? 12
                                                                          : 1;
  return cycles;
}

/// Cycles; handing a part to another thread and waiting for it takes about 3,000.
constexpr std::int64_t kWorthThreads = 10'000;

/// Of results for one thread, which then are in its second cache again when the next run writes them.
constexpr std::size_t kCachedBytes = 5 << 18;

/// Short runs are cut into one task for each thread, so that a thread finds the lines that
/// it wrote before in its own cache; long ones into several, for a thread may be late.
std::int64_t tiles_per_task(std::int64_t tiles, std::int64_t threads, std::int64_t tile_cycles) {
  constexpr std::int64_t kLongCycles = 1'000'000;
  const std::int64_t tasks = tiles * tile_cycles < kLongCycles ? threads : threads * 8;
  return (tiles + tasks - 1) / tasks;
}

}  // namespace

struct BatchKernel::State {
  scalar::Program program;
  std::int64_t tile_cycles = 0;  ///< see estimated_cycles
  std::unique_ptr<Session> session;
  TilePlan plan;
  int threads = 0;
  Pool<Workspaces> workspaces;

  std::size_t workspace_bytes() const { return plan.workspace_bytes * static_cast<std::size_t>(threads); }
  void plan_within(const KernelShape& shape, std::size_t most_bytes);
  void emit(llvm::Module& module) const;
  void link();
};

void BatchKernel::State::plan_within(const KernelShape& shape, std::size_t most_bytes) {
  plan = plan_tiles(program, shape);
  const auto is_too_large = [&] { return most_bytes > 0 && workspace_bytes() > most_bytes; };
  while (is_too_large() && threads > 1) threads = (threads + 1) / 2;
  while (is_too_large() && plan.tiles_per_block > 1)
    plan = plan_tiles(program, shape, plan.tiles_per_block / 2);
}

/// The kernel, and one transposition for each size of arguments or outputs.
void BatchKernel::State::emit(llvm::Module& module) const {
  const int lanes = static_cast<int>(plan.lanes);
  emit_scalar_kernel(module, program, lanes, "loipe_kernel");
  for (const auto& [first, direction] : {std::pair(&plan.first_in, Direction::examples_to_rows),
                                         std::pair(&plan.first_out, Direction::rows_to_examples)}) {
    std::vector<std::size_t> all = sizes(*first);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (std::size_t size : all)
      if (size > 1)
        emit_transposition(module, program.dtype, lanes, static_cast<std::int64_t>(size), direction,
                           transposition_name(direction, size));
  }
}

/// Addresses of what emit() has emitted.
void BatchKernel::State::link() {
  plan.kernel = reinterpret_cast<Kernel>(session->address("loipe_kernel"));
  if (stores_constants(program))
    plan.kernel_with_constants = reinterpret_cast<Kernel>(session->address(with_constants("loipe_kernel")));
  const auto transpositions = [&](const std::vector<std::size_t>& first, Direction direction) {
    std::vector<Transposition> result;
    for (std::size_t size : sizes(first))
      result.push_back(
          size > 1 ? reinterpret_cast<Transposition>(session->address(transposition_name(direction, size)))
                   : nullptr);
    return result;
  };
  plan.to_rows = transpositions(plan.first_in, Direction::examples_to_rows);
  plan.to_examples = transpositions(plan.first_out, Direction::rows_to_examples);
}

BatchKernel::BatchKernel(const Program& program, const BatchOptions& options)
    : state_(std::make_unique<State>()) {
  if (const std::vector<std::string> reasons = scalar::reasons_against(program); !reasons.empty())
    throw Unsupported("program '" + program.name() + "' has no scalar form: " + join(reasons, "; "));
  state_->program = scalar::scalarize(program);
  state_->tile_cycles = estimated_cycles(state_->program);
  state_->threads = options.threads > 0 ? options.threads : cpu::available_threads();
  const Level usual = state_->program.nodes.size() <= kLargestFull ? Level::full : Level::quick;
  const int lanes =
      options.lanes > 0 ? options.lanes : vector_bytes() / static_cast<int>(size_of(state_->program.dtype));
  state_->plan_within(kernel_shape(state_->program, lanes), options.most_workspace_bytes);
  state_->session = std::make_unique<Session>(options.level.value_or(usual));
  Session& session = *state_->session;
  // The scalar program decides all of the code: one that is in the cache is not even emitted.
  std::string key;
  if (options.use_code_cache)
    key = session.key(std::to_string(lanes) + " lanes, " + scalar::content(state_->program));
  if (key.empty() || !session.load(key)) {
    auto module = session.new_module(program.name());
    state_->emit(*module);
    session.add(std::move(module), key);
  }
  state_->link();
}

BatchKernel::~BatchKernel() = default;

int BatchKernel::lanes() const { return static_cast<int>(state_->plan.lanes); }
std::size_t BatchKernel::workspace_bytes() const { return state_->workspace_bytes(); }
std::size_t BatchKernel::node_count() const { return state_->program.nodes.size(); }

std::int64_t BatchKernel::operations() const {
  return std::count_if(
      state_->program.nodes.begin(), state_->program.nodes.end(), [](const scalar::Node& node) {
        return node.op != scalar::Op::argument && node.op != scalar::Op::constant &&
               node.op != scalar::Op::neg && !scalar::is_logical(node.op) && node.op != scalar::Op::select;
      });
}

void BatchKernel::run(const BatchRun& run) const {
  const TilePlan& plan = state_->plan;
  const std::int64_t tiles = (run.examples + plan.lanes - 1) / plan.lanes;
  const std::int64_t threads = tiles * state_->tile_cycles < kWorthThreads ? 1 : state_->threads;
  const std::int64_t examples_per_task = tiles_per_task(tiles, threads, state_->tile_cycles) * plan.lanes;
  const std::int64_t tasks = (run.examples + examples_per_task - 1) / examples_per_task;
  const int used = static_cast<int>(std::min(threads, tasks));
  const bool stay_in_cache = plan.result_bytes(run.examples) / static_cast<std::size_t>(used) <= kCachedBytes;
  const auto workspaces =
      state_->workspaces.take([&] { return std::make_unique<Workspaces>(plan, state_->threads); });
  cpu::parallel_for(used, tasks, [&](std::int64_t task, int thread) {
    TileRunner runner(plan, run, stay_in_cache, workspaces->of(thread));
    runner(task * examples_per_task, std::min((task + 1) * examples_per_task, run.examples));
  });
}

}  // namespace loipe::jit
