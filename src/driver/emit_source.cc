// SPDX-License-Identifier: Apache-2.0
#include "driver/emit_source.h"

#include <cctype>

#include "backends/c/emit_c.h"
#include "base/file.h"
#include "base/text.h"
#include "driver/output_file.h"

namespace loipe {

namespace {

c::Pattern pattern_of(const std::string& result, SparsePattern pattern) {
  const bool is_full = pattern.entry_count() == pattern.row_count * pattern.column_count;
  return {c::identifier_characters(result), std::move(pattern.rows), std::move(pattern.columns), is_full};
}

c::Source emit(const Program& program, const c::SourceNames& names, const std::vector<c::Pattern>& patterns,
               const std::string& what) {
  if (const auto reasons = c::reasons_against(program); !reasons.empty())
    throw Unsupported(what + " cannot be written as C: " + join(reasons, "; "));
  return c::emit_c(program, names, patterns);
}

void check_function_name(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
      c::identifier_characters(name) != name)
    throw UserError("'" + shortened(name) +
                    "' is no name of a function in C: expected letters, digits and _, no digit first");
}

}  // namespace

CSource c_source(const CompiledDerivative& derivative, const std::string& function) {
  check_function_name(function);
  const DerivativeSignature& signature = derivative.signature();
  const Compilation& compilation = derivative.compilation();
  const DerivativeKind kind = derivative.request().kind;
  c::SourceNames names{function, {}, {}};
  for (std::size_t i = 0; i < signature.inputs.size(); ++i)
    names.arguments.push_back((i < derivative.primal().arguments().size() ? "in." : "") +
                              signature.inputs[i].name);
  const bool has_blocks = compilation.structures.empty();
  const std::size_t named = has_blocks ? signature.results.size() : signature.value_count;
  std::vector<c::Pattern> patterns;
  for (std::size_t i = 0; i < compilation.optimised.outputs().size(); ++i) {
    // Beside the results lie terms of structured blocks, or what attentions report.
    names.outputs.push_back(i < named ? signature.results[i].name : "more." + std::to_string(i - named));
    const std::size_t first = signature.value_count + signature.jacobian_count;
    if (has_blocks && i >= first && i < named &&
        (kind == DerivativeKind::jacobian || kind == DerivativeKind::hessian))
      patterns.push_back(pattern_of(names.outputs[i], derivative.pattern(i - first)));
  }
  c::Source source = emit(compilation.optimised, names, patterns, "the " + to_string(kind));
  return {std::move(source.header), std::move(source.source)};
}

std::vector<std::filesystem::path> emit_c_source(const TaskJacobian& jacobian, const std::string& name,
                                                 const std::filesystem::path& folder) {
  const Program& program = jacobian.compilation().optimised;
  c::SourceNames names{
      "loipe_" + c::identifier_characters(std::filesystem::path(name).stem().string()), {}, {}};
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    names.arguments.push_back(jacobian.tensor_name(i));
  std::vector<c::Pattern> patterns;
  for (std::size_t i = 0; i < program.outputs().size(); ++i) {
    names.outputs.push_back(jacobian.result_name(i));
    if (jacobian.has_pattern(i)) patterns.push_back(pattern_of(names.outputs[i], jacobian.pattern(i)));
  }
  const c::Source source =
      emit(program, names, patterns, "the " + to_string(jacobian.request().kind) + " of '" + name + "'");

  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError("cannot make the folder '" + folder.string() + "': " + error.message());
  const std::vector<std::filesystem::path> paths{folder / (names.function + ".h"),
                                                 folder / (names.function + ".c")};
  for (const auto& path : paths) check_writable(path);
  write_file(paths[0], source.header);
  write_file(paths[1], source.source);
  return paths;
}

}  // namespace loipe
