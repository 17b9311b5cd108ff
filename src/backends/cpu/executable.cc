// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/executable.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "base/large_pages.h"

namespace loipe::cpu {

namespace {

constexpr std::size_t kAlignment = 64;

struct AlignedDelete {
  void operator()(std::byte* bytes) const { ::operator delete(bytes, std::align_val_t{kAlignment}); }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedDelete>;

AlignedBytes allocate(std::size_t bytes) {
  AlignedBytes memory(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment})));
  ask_for_large_pages(memory.get(), bytes);
  return memory;
}

}  // namespace

/// The memory of one run: arena, scratch, and where every buffer lies.
class CpuExecutable::Workspace {
 public:
  Workspace(const Plan& plan, std::size_t shared_bytes, std::size_t scratch_bytes)
      : memory_(allocate(plan.arena_bytes + shared_bytes + scratch_bytes)),
        bases_(plan.buffers.size(), nullptr) {
    shared_ = memory_.get() + plan.arena_bytes;
    scratch_ = shared_ + shared_bytes;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      if (buffer.kind == BufferKind::arena) bases_[i] = memory_.get() + buffer.position;
      // Steps only read constants and arguments.
      if (buffer.kind == BufferKind::constant)
        bases_[i] = const_cast<std::byte*>(plan.constants[buffer.position]->bytes().data());
      if (buffer.kind == BufferKind::argument || buffer.kind == BufferKind::output) bound_.push_back(i);
    }
  }

  void bind(const Plan& plan, std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) {
    for (std::size_t i : bound_) {
      const Buffer& buffer = plan.buffers[i];
      bases_[i] = buffer.kind == BufferKind::argument
                      ? const_cast<std::byte*>(arguments[buffer.position].data())
                      : outputs[buffer.position].data();
    }
  }

  RunContext context(std::size_t scratch_stride, int threads) const {
    return {bases_.data(), scratch_, scratch_stride, shared_, threads};
  }

 private:
  AlignedBytes memory_;
  std::byte* shared_;
  std::byte* scratch_;
  std::vector<std::byte*> bases_;
  std::vector<std::size_t> bound_;
};

CpuExecutable::CpuExecutable(const Program& program, Plan plan, int threads)
    : Executable(program), plan_(std::move(plan)), threads_(threads) {
  scratch_stride_ = plan_.scratch_bytes();
  shared_bytes_ = plan_.shared_bytes();
  peak_bytes_ = peak_bytes_of(program, plan_, threads);
}

std::size_t CpuExecutable::peak_bytes_of(const Program& program, const Plan& plan, int threads) {
  std::size_t bytes = plan.arena_bytes + plan.heap_bytes() + plan.shared_bytes() +
                      plan.scratch_bytes() * static_cast<std::size_t>(threads);
  for (const auto& constant : plan.constants) bytes += constant->type().byte_size();
  for (Value argument : program.arguments()) bytes += program.type(argument).byte_size();
  for (Value output : program.outputs()) bytes += program.type(output).byte_size();
  return bytes;
}

CpuExecutable::~CpuExecutable() = default;

void CpuExecutable::run_checked(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const {
  const auto workspace = workspaces_.take([&] {
    return std::make_unique<Workspace>(plan_, shared_bytes_,
                                       scratch_stride_ * static_cast<std::size_t>(threads_));
  });
  workspace->bind(plan_, arguments, outputs);
  const RunContext context = workspace->context(scratch_stride_, threads_);
  for (const auto& step : plan_.steps) step->run(context);
}

}  // namespace loipe::cpu
