// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/batch_kernel.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/threads.h"
#include "backends/llvm/scalar_emitter.h"
#include "backends/scalar/scalarize.h"
#include "base/check.h"
#include "base/text.h"

namespace loipe::jit {

struct BatchKernel::State {
  scalar::Program program;
  std::unique_ptr<Session> session;
  KernelShape shape;
  void (*kernel)(const void* const*, void* const*, void*) = nullptr;
  int threads = 0;
};

namespace {

/// Scalar nodes; the code generator's full level takes about 60 microseconds for each.
constexpr std::size_t kLargestFull = 3'000;

/// Elements of one example of each argument or output.
std::vector<std::size_t> sizes(const std::vector<TensorType>& types) {
  std::vector<std::size_t> result;
  for (const TensorType& type : types) result.push_back(static_cast<std::size_t>(type.element_count()));
  return result;
}

/// Runs tiles of `lanes` examples. Data of one element per example is read and written
/// in place; other data passes through a tile [element][lane] that stays in cache.
template <class T>
class TileRunner {
 public:
  using Kernel = void (*)(const void* const*, void* const*, void*);

  TileRunner(Kernel kernel, const KernelShape& shape, const scalar::Program& program, std::int64_t batch,
             std::span<const std::span<const std::byte>> arguments, const std::vector<bool>& is_shared,
             std::span<const std::span<std::byte>> outputs)
      : kernel_(kernel),
        lanes_(static_cast<std::size_t>(shape.lanes)),
        batch_(static_cast<std::size_t>(batch)),
        arguments_(arguments),
        is_shared_(is_shared),
        outputs_(outputs),
        in_sizes_(sizes(program.arguments)),
        out_sizes_(sizes(program.outputs)),
        scratch_(shape.scratch_vectors * lanes_ + 8) {
    for (std::size_t size : in_sizes_) in_tiles_.emplace_back(size * lanes_);
    for (std::size_t size : out_sizes_) out_tiles_.emplace_back(size * lanes_);
    for (std::size_t k = 0; k < in_sizes_.size(); ++k)
      if (is_shared_[k]) fill_shared(k);
    in_.resize(in_sizes_.size());
    out_.resize(out_sizes_.size());
  }

  void run_tile(std::size_t first) {
    const std::size_t count = std::min(lanes_, batch_ - first);
    for (std::size_t k = 0; k < in_.size(); ++k) in_[k] = input(k, first, count);
    for (std::size_t k = 0; k < out_.size(); ++k)
      out_[k] = is_direct(out_sizes_[k], count) ? output(k) + first : out_tiles_[k].data();
    kernel_(in_.data(), out_.data(), scratch_.data());
    for (std::size_t k = 0; k < out_.size(); ++k)
      if (!is_direct(out_sizes_[k], count)) write_back(k, first, count);
  }

 private:
  bool is_direct(std::size_t size, std::size_t count) const { return size == 1 && count == lanes_; }
  const T* argument(std::size_t k) const { return reinterpret_cast<const T*>(arguments_[k].data()); }
  T* output(std::size_t k) const { return reinterpret_cast<T*>(outputs_[k].data()); }

  void fill_shared(std::size_t k) {
    for (std::size_t e = 0; e < in_sizes_[k]; ++e)
      for (std::size_t lane = 0; lane < lanes_; ++lane) in_tiles_[k][e * lanes_ + lane] = argument(k)[e];
  }

  const T* input(std::size_t k, std::size_t first, std::size_t count) {
    if (is_shared_[k]) return in_tiles_[k].data();
    const std::size_t size = in_sizes_[k];
    if (is_direct(size, count)) return argument(k) + first;
    // A tile beyond the end repeats its last example: no lane computes on garbage.
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      const T* example = argument(k) + (first + std::min(lane, count - 1)) * size;
      for (std::size_t e = 0; e < size; ++e) in_tiles_[k][e * lanes_ + lane] = example[e];
    }
    return in_tiles_[k].data();
  }

  void write_back(std::size_t k, std::size_t first, std::size_t count) {
    const std::size_t size = out_sizes_[k];
    const T* tile = out_tiles_[k].data();
    T* target = output(k) + first * size;
    for (std::size_t lane = 0; lane < count; ++lane)
      for (std::size_t e = 0; e < size; ++e) target[lane * size + e] = tile[e * lanes_ + lane];
  }

  Kernel kernel_;
  std::size_t lanes_, batch_;
  std::span<const std::span<const std::byte>> arguments_;
  const std::vector<bool>& is_shared_;
  std::span<const std::span<std::byte>> outputs_;
  std::vector<std::size_t> in_sizes_, out_sizes_;
  std::vector<std::vector<T>> in_tiles_, out_tiles_;
  std::vector<T> scratch_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

template <class T>
void run_batch(const scalar::Program& program, const KernelShape& shape,
               typename TileRunner<T>::Kernel kernel, int threads, std::int64_t batch,
               std::span<const std::span<const std::byte>> arguments, const std::vector<bool>& is_shared,
               std::span<const std::span<std::byte>> outputs) {
  // Blocks of tiles are the tasks; each thread has tiles and scratch of its own.
  constexpr std::int64_t kTilesPerTask = 16;
  const std::int64_t tiles = (batch + shape.lanes - 1) / shape.lanes;
  const std::int64_t tasks = (tiles + kTilesPerTask - 1) / kTilesPerTask;
  const std::int64_t work = tiles * static_cast<std::int64_t>(program.nodes.size());
  const int used = work < 100'000 ? 1 : static_cast<int>(std::min<std::int64_t>(threads, tasks));
  std::vector<std::unique_ptr<TileRunner<T>>> runners(static_cast<std::size_t>(used));
  cpu::parallel_for(used, tasks, [&](std::int64_t task, int thread) {
    auto& runner = runners[static_cast<std::size_t>(thread)];
    if (!runner)
      runner = std::make_unique<TileRunner<T>>(kernel, shape, program, batch, arguments, is_shared, outputs);
    const std::int64_t last = std::min(tiles, (task + 1) * kTilesPerTask);
    for (std::int64_t tile = task * kTilesPerTask; tile < last; ++tile)
      runner->run_tile(static_cast<std::size_t>(tile * shape.lanes));
  });
}

}  // namespace

BatchKernel::BatchKernel(const Program& program, const BatchOptions& options)
    : state_(std::make_unique<State>()) {
  if (const std::vector<std::string> reasons = scalar::reasons_against(program); !reasons.empty())
    throw Unsupported("program '" + program.name() + "' has no scalar form: " + join(reasons, "; "));
  state_->program = scalar::scalarize(program);
  state_->threads = options.threads > 0 ? options.threads : cpu::available_threads();
  const Level usual = state_->program.nodes.size() <= kLargestFull ? Level::full : Level::quick;
  state_->session = std::make_unique<Session>(options.level.value_or(usual));
  const int lanes =
      options.lanes > 0 ? options.lanes : vector_bytes() / static_cast<int>(size_of(state_->program.dtype));
  auto module = state_->session->new_module(program.name());
  state_->shape = emit_scalar_kernel(*module, state_->program, lanes, "loipe_kernel");
  state_->session->add(std::move(module));
  state_->kernel = reinterpret_cast<void (*)(const void* const*, void* const*, void*)>(
      state_->session->address("loipe_kernel"));
}

BatchKernel::~BatchKernel() = default;

int BatchKernel::lanes() const { return state_->shape.lanes; }
std::size_t BatchKernel::node_count() const { return state_->program.nodes.size(); }

std::int64_t BatchKernel::operations() const {
  return std::count_if(
      state_->program.nodes.begin(), state_->program.nodes.end(), [](const scalar::Node& node) {
        return node.op != scalar::Op::argument && node.op != scalar::Op::constant &&
               node.op != scalar::Op::neg && !scalar::is_logical(node.op) && node.op != scalar::Op::select;
      });
}

void BatchKernel::run(std::int64_t batch, std::span<const std::span<const std::byte>> arguments,
                      const std::vector<bool>& is_shared,
                      std::span<const std::span<std::byte>> outputs) const {
  const scalar::Program& program = state_->program;
  require(arguments.size() == program.arguments.size() && outputs.size() == program.outputs.size() &&
              is_shared.size() == arguments.size(),
          "a batch kernel got another number of spans");
  const auto bytes = [&](const TensorType& type, bool shared) {
    return type.byte_size() * static_cast<std::size_t>(shared ? 1 : batch);
  };
  for (std::size_t k = 0; k < arguments.size(); ++k)
    if (arguments[k].size() != bytes(program.arguments[k], is_shared[k]))
      throw UserError("argument " + std::to_string(k) + " has " + std::to_string(arguments[k].size()) +
                      " bytes, expected " + std::to_string(bytes(program.arguments[k], is_shared[k])));
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k].size() != bytes(program.outputs[k], false))
      throw UserError("output " + std::to_string(k) + " has " + std::to_string(outputs[k].size()) +
                      " bytes, expected " + std::to_string(bytes(program.outputs[k], false)));
  if (batch == 0) return;
  if (program.dtype == DType::f64)
    run_batch<double>(program, state_->shape, state_->kernel, state_->threads, batch, arguments, is_shared,
                      outputs);
  else
    run_batch<float>(program, state_->shape, state_->kernel, state_->threads, batch, arguments, is_shared,
                     outputs);
}

}  // namespace loipe::jit
