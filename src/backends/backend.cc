// SPDX-License-Identifier: Apache-2.0
#include "backends/backend.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
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
  if (const std::size_t needed = executable->peak_bytes();
      options.memory_limit > 0 && needed > options.memory_limit)
    throw ResourceError("program '" + program.name() + "' needs " + std::to_string(needed) +
                        " bytes on back end '" + std::string(name()) + "', but the memory limit is " +
                        std::to_string(options.memory_limit) + " bytes");
  return executable;
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

void check_size(const std::string& what, const TensorType& type, std::int64_t examples, std::size_t bytes) {
  const std::size_t expected = type.byte_size() * static_cast<std::size_t>(examples);
  if (bytes == expected) return;
  throw UserError(what + " is " + (examples == 1 ? "" : std::to_string(examples) + " times ") + to_string(type) +
                  " of " + std::to_string(expected) + " bytes, got a span of " + std::to_string(bytes) + " bytes");
}

/// The bytes of one example in a span of several.
template <class Span>
Span example_of(Span all, std::int64_t example, std::int64_t examples) {
  const std::size_t size = all.size() / static_cast<std::size_t>(examples);
  return all.subspan(static_cast<std::size_t>(example) * size, size);
}

}  // namespace

void Executable::run(std::span<const ConstBytes> arguments, std::span<const Bytes> outputs) const {
  check_count(program_name_, "arguments", arguments.size(), argument_types_.size());
  check_count(program_name_, "outputs", outputs.size(), output_types_.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    check_size("argument '" + argument_names_[i] + "'", argument_types_[i], 1, arguments[i].size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_size("output " + std::to_string(i), output_types_[i], 1, outputs[i].size());
  run_checked(arguments, outputs);
}

void Executable::run_batch(std::int64_t batch, std::span<const ConstBytes> arguments,
                           const std::vector<bool>& is_shared, std::span<const Bytes> outputs) const {
  if (batch < 0) throw UserError("a batch of " + std::to_string(batch) + " examples");
  check_count(program_name_, "arguments", arguments.size(), argument_types_.size());
  check_count(program_name_, "arguments", is_shared.size(), argument_types_.size());
  check_count(program_name_, "outputs", outputs.size(), output_types_.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    check_size("argument '" + argument_names_[i] + "'", argument_types_[i], is_shared[i] ? 1 : batch,
               arguments[i].size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_size("output " + std::to_string(i), output_types_[i], batch, outputs[i].size());
  if (batch > 0) run_batch_checked(batch, arguments, is_shared, outputs);
}

void Executable::run_batch_checked(std::int64_t batch, std::span<const ConstBytes> arguments,
                                   const std::vector<bool>& is_shared, std::span<const Bytes> outputs) const {
  std::vector<ConstBytes> in(arguments.begin(), arguments.end());
  std::vector<Bytes> out(outputs.size());
  for (std::int64_t example = 0; example < batch; ++example) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (!is_shared[i]) in[i] = example_of(arguments[i], example, batch);
    for (std::size_t i = 0; i < outputs.size(); ++i) out[i] = example_of(outputs[i], example, batch);
    run_checked(in, out);
  }
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
  run_checked(argument_bytes, output_bytes);
  return outputs;
}

}  // namespace loipe
