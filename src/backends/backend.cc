// SPDX-License-Identifier: Apache-2.0
#include "backends/backend.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/saturated.h"
#include "base/text.h"
#include "ir/interpreter.h"

namespace loipe {

std::span<const Backend* const> all_backends() {
  static const Backend* const backends[] = {&reference_backend(), &cpu_backend()};
  return backends;
}

const Backend& find_backend(std::string_view name) {
  std::vector<std::string> names;
  for (const Backend* backend : all_backends()) {
    if (backend->name() == name) return *backend;
    names.emplace_back(backend->name());
  }
  throw UserError("unknown back end '" + std::string(name) + "'" + did_you_mean(name, names) +
                  "; the back ends are " + join(names, ", "));
}

std::unique_ptr<Executable> Backend::compile(const Program& program, const BackendOptions& options) const {
  if (options.threads < 0)
    throw UserError("threads is " + std::to_string(options.threads) + ", expected 0 (all cores) or more");
  if (const std::vector<std::string> reasons = reasons_against(program); !reasons.empty())
    throw Unsupported("back end '" + std::string(name()) + "' cannot compile program '" + program.name() +
                      "': " + join(reasons, "; "));
  std::unique_ptr<Executable> executable = compile_supported(program, options);
  if (const std::size_t needed = saturated_sum(executable->peak_bytes(), options.reserved_bytes);
      options.memory_limit > 0 && needed > options.memory_limit)
    throw MemoryLimitExceeded(
        "program '" + program.name() + "'" +
            (options.batch > 1 ? " with " + std::to_string(options.batch) + " examples" : "") +
            " on back end '" + std::string(name()) + "' needs " + std::to_string(needed) +
            " bytes, but the memory limit is " + std::to_string(options.memory_limit) + " bytes",
        needed);
  executable->flushes_subnormals_ = options.flush_subnormals;
  return executable;
}

FloatingMode Executable::mode() const {
  const FloatingMode current = FloatingMode::of_this_thread();
  return flushes_subnormals_ ? current.flushing_subnormals() : current;
}

Executable::Executable(const Program& program) : program_name_(program.name()) {
  for (std::size_t i = 0; i < program.arguments().size(); ++i) {
    argument_names_.push_back(program.argument_name(i));
    argument_types_.push_back(program.type(program.arguments()[i]));
  }
  for (Value output : program.outputs()) output_types_.push_back(program.type(output));
}

namespace {

void check_count(const std::string& program, const char* what, std::size_t given, std::size_t expected) {
  if (given != expected)
    throw UserError("program '" + program + "' has " + std::to_string(expected) + " " + what + ", got " +
                    std::to_string(given) + " spans");
}

[[noreturn]] void refuse_size(const std::string& what, const TensorType& type, std::size_t bytes) {
  throw UserError(what + " is " + to_string(type) + " of " + std::to_string(type.byte_size()) +
                  " bytes, got a span of " + std::to_string(bytes) + " bytes");
}

/// Arguments or results of a batch that are not shared.
struct BatchSide {
  std::int64_t examples;
  BatchLayout layout;
  std::int64_t stride;

  bool is_rows() const { return layout == BatchLayout::structure_of_arrays; }
  std::size_t fewest_bytes(const TensorType& type) const {
    const auto n = static_cast<std::size_t>(type.element_count());
    const auto batch = static_cast<std::size_t>(examples), row = static_cast<std::size_t>(stride);
    const std::size_t elements = is_rows() && n > 0 ? saturated_sum(saturated_product(n - 1, row), batch)
                                                    : saturated_product(n, batch);
    return saturated_product(size_of(type.dtype), elements);
  }
  /// A last row may have its whole stride.
  bool fits(const TensorType& type, std::size_t bytes) const {
    if (bytes == fewest_bytes(type)) return true;
    const std::size_t most = saturated_product(type.byte_size(), static_cast<std::size_t>(stride));
    return is_rows() && bytes > fewest_bytes(type) && bytes <= most;
  }
  [[noreturn]] void refuse(const std::string& what, const TensorType& type, std::size_t bytes) const {
    throw UserError(what + " is " + std::to_string(examples) + " examples of " + to_string(type) +
                    (is_rows() ? " as a structure of arrays of stride " + std::to_string(stride) : "") +
                    ", " + std::to_string(fewest_bytes(type)) + " bytes, got a span of " +
                    std::to_string(bytes) + " bytes");
  }
};

/// The stride, 0 replaced by what it stands for.
std::int64_t checked_stride(const char* what, BatchLayout layout, std::int64_t stride,
                            std::int64_t examples) {
  if (layout == BatchLayout::array_of_structures && stride != 0)
    throw UserError(std::string("the stride of ") + what + " is " + std::to_string(stride) +
                    ", but they are an array of structures, which has none; expected 0 or the layout "
                    "structure_of_arrays");
  if (stride == 0) return examples;
  if (stride < examples)
    throw UserError(std::string("the stride of ") + what + " is " + std::to_string(stride) +
                    ", expected at least the number of examples, " + std::to_string(examples) + ", or 0");
  return stride;
}

}  // namespace

// Texts are only built where something is wrong: a good run allocates nothing.
void Executable::run(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const {
  check_count(program_name_, "arguments", arguments.size(), argument_types_.size());
  check_count(program_name_, "outputs", outputs.size(), output_types_.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].size() != argument_types_[i].byte_size())
      refuse_size("argument '" + argument_names_[i] + "'", argument_types_[i], arguments[i].size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].size() != output_types_[i].byte_size())
      refuse_size("output " + std::to_string(i), output_types_[i], outputs[i].size());
  const ScopedFloatingMode scope(mode());
  run_checked(arguments, outputs);
}

void Executable::run_batch(std::int64_t batch, std::span<const ConstBytes> arguments,
                           const std::vector<bool>& is_shared, std::span<const Bytes> outputs,
                           const BatchLayouts& layouts) const {
  if (batch < 0) throw UserError("a batch of " + std::to_string(batch) + " examples, expected 0 or more");
  check_count(program_name_, "arguments", arguments.size(), argument_types_.size());
  check_count(program_name_, "arguments", is_shared.size(), argument_types_.size());
  check_count(program_name_, "outputs", outputs.size(), output_types_.size());
  BatchLayouts full = layouts;
  full.argument_stride = checked_stride("arguments", layouts.arguments, layouts.argument_stride, batch);
  full.result_stride = checked_stride("results", layouts.results, layouts.result_stride, batch);
  const BatchSide in{batch, full.arguments, full.argument_stride},
      out{batch, full.results, full.result_stride};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const TensorType& type = argument_types_[i];
    const std::size_t bytes = arguments[i].size();
    if (is_shared[i] ? bytes == type.byte_size() : in.fits(type, bytes)) continue;
    if (is_shared[i]) refuse_size("the shared argument '" + argument_names_[i] + "'", type, bytes);
    in.refuse("argument '" + argument_names_[i] + "'", type, bytes);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!out.fits(output_types_[i], outputs[i].size()))
      out.refuse("output " + std::to_string(i), output_types_[i], outputs[i].size());
  const ScopedFloatingMode scope(mode());
  if (batch > 0) run_batch_checked({batch, arguments, is_shared, outputs, full});
}

std::vector<Tensor> Executable::run(std::span<const Tensor> arguments) const {
  check_count(program_name_, "arguments", arguments.size(), argument_types_.size());
  std::vector<ConstBytes> argument_bytes;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].type() != argument_types_[i])
      throw UserError("argument '" + argument_names_[i] + "' is " + to_string(arguments[i].type()) +
                      ", expected " + to_string(argument_types_[i]));
    argument_bytes.push_back(arguments[i].bytes());
  }
  std::vector<Tensor> outputs;
  std::vector<Bytes> output_bytes;
  for (const TensorType& type : output_types_) outputs.emplace_back(type);
  for (Tensor& output : outputs) output_bytes.push_back(output.bytes());
  const ScopedFloatingMode scope(mode());
  run_checked(argument_bytes, output_bytes);
  return outputs;
}

}  // namespace loipe
