// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/batch.h>
#include <loipe/error.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend_passes.h"
#include "base/floating_mode.h"
#include "base/pool.h"
#include "ir/program.h"

namespace loipe {

struct BackendOptions {
  /// Threads of one run; 0 means all cores. Results do not depend on it.
  int threads = 0;
  /// Bytes that a run may need (see Executable::peak_bytes); 0 means no limit.
  std::size_t memory_limit = 0;
  /// Bytes that the caller holds during a run and wants counted in the limit: of a batch, those of
  /// the inputs and results beyond one example's.
  std::size_t reserved_bytes = 0;

  /// What is left of the limit for a run, at least 1; 0: no limit.
  std::size_t bytes_left() const {
    if (memory_limit == 0) return 0;
    return memory_limit > reserved_bytes ? memory_limit - reserved_bytes : 1;
  }
  /// Examples of one run_batch. More than 1 lets a back end compile for running over
  /// examples; any number of them may be run all the same.
  std::int64_t batch = 1;
  /// Runs take subnormal numbers (below 1.2e-38 in f32, 2.2e-308 in f64) for 0. They are many times
  /// slower than others on most processors, but log(1e-40) is then -inf.
  bool flush_subnormals = false;
  /// Whether code may come from the cache on disk; not where compiling is measured.
  bool use_code_cache = true;
  DisabledPasses disabled = {};
  /// Called with what each pass did to the program, once it is compiled.
  std::function<void(const BackendPassReport&)> report = {};
};

/// A memory limit that no plan of the back end keeps; the least that a run needs is told.
class MemoryLimitExceeded : public ResourceError {
 public:
  MemoryLimitExceeded(const std::string& message, std::size_t bytes)
      : ResourceError(message), bytes_(bytes) {}
  std::size_t needed_bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
};

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

/// One run of a batch: sizes are checked, strides are never 0.
struct BatchRun {
  std::int64_t examples;
  std::span<const ConstBytes> arguments;
  const std::vector<bool>& is_shared;
  std::span<const Bytes> outputs;
  BatchLayouts layouts;
};

/// A compiled program. It is immutable: any number of threads may run it at the
/// same time, with different arguments and outputs. A run writes nothing but its
/// outputs, and gives bitwise the same results for any number of threads.
class Executable {
 public:
  explicit Executable(const Program& program);
  virtual ~Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// One span per argument and per output, in program order: row-major elements,
  /// aligned for the element type, of exactly the declared size (UserError).
  /// Outputs overlap neither each other nor arguments.
  void run(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const;
  /// The same on tensors.
  std::vector<Tensor> run(std::span<const Tensor> arguments) const;

  /// Runs `batch` examples. Every argument has an axis of examples, but for those that
  /// all examples share; every output has one; `layouts` says which axis it is. The bits
  /// of an example depend neither on the others, nor on how many there are, nor on layouts.
  void run_batch(std::int64_t batch, std::span<const ConstBytes> arguments,
                 const std::vector<bool>& is_shared, std::span<const Bytes> outputs,
                 const BatchLayouts& layouts = {}) const;

  /// Whether run_batch computes several examples at once.
  virtual bool vectorises_examples() const { return false; }

  std::span<const TensorType> argument_types() const { return argument_types_; }
  std::span<const TensorType> output_types() const { return output_types_; }

  /// Bytes that one run needs at its peak, known before the run: arguments,
  /// outputs, constants and everything in between.
  virtual std::size_t peak_bytes() const = 0;

 private:
  /// Sizes are checked.
  virtual void run_checked(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const = 0;
  /// Unless a back end does better: one example after the other.
  virtual void run_batch_checked(const BatchRun& run) const;

  /// Prepared once and used again: a batch that runs example by example allocates nothing.
  struct LoopScratch {
    std::vector<ConstBytes> arguments;
    std::vector<Bytes> outputs;
    std::vector<Tensor> argument_tensors, output_tensors;  ///< of one example of a structure of arrays
  };

  friend class Backend;
  FloatingMode mode() const;

  bool flushes_subnormals_ = false;
  std::string program_name_;
  std::vector<std::string> argument_names_;
  std::vector<TensorType> argument_types_, output_types_;
  Pool<LoopScratch> loop_scratch_;
};

/// Compiles programs. Back ends are stateless and listed in backend.cc.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  /// Why this back end cannot compile the program, one reason a line; empty if it can.
  virtual std::vector<std::string> reasons_against(const Program& program) const = 0;
  /// Whether run_batch of the program, compiled for a batch with these options, computes several examples at
  /// once.
  virtual bool vectorises_examples(const Program&, const BackendOptions&) const { return false; }
  /// Unsupported with those reasons; ResourceError that states the bytes needed
  /// when they exceed options.memory_limit. The program need not outlive the result.
  std::unique_ptr<Executable> compile(const Program& program, const BackendOptions& options = {}) const;

 private:
  virtual std::unique_ptr<Executable> compile_supported(const Program& program,
                                                        const BackendOptions& options) const = 0;
};

std::span<const Backend* const> all_backends();
/// The back end of that name; UserError that suggests the nearest name otherwise.
const Backend& find_backend(std::string_view name);

}  // namespace loipe
