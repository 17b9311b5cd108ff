// SPDX-License-Identifier: Apache-2.0
#include "driver/emit_source.h"

#include <cctype>

#include "backends/c/emit_c.h"
#include "backends/scalar/scalarize.h"
#include "base/file.h"
#include "base/text.h"

namespace loipe {

namespace {

/// Beyond this the source is tens of megabytes of statements.
constexpr std::int64_t kLargestSource = 300'000;

std::string identifier(const std::string& text) {
  std::string name;
  for (char c : std::filesystem::path(text).stem().string())
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "f_" + name;
  return "loipe_" + name;
}

/// "jac.0.x" as in files, as part of an identifier.
std::string c_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

std::vector<c::Pattern> patterns_of(const TaskJacobian& jacobian) {
  std::vector<c::Pattern> patterns;
  for (std::size_t i = 0; i < jacobian.result_types().size(); ++i)
    if (jacobian.has_pattern(i)) {
      const SparsePattern pattern = jacobian.pattern(i);
      patterns.push_back({c_name(jacobian.result_name(i)), pattern.rows, pattern.columns});
    }
  return patterns;
}

}  // namespace

std::vector<std::filesystem::path> emit_c_source(const TaskJacobian& jacobian, const std::string& name,
                                                 const std::filesystem::path& folder) {
  const Program& program = jacobian.compilation().optimised;
  if (const auto reasons = scalar::reasons_against(program, kLargestSource); !reasons.empty())
    throw Unsupported("the " + to_string(jacobian.request().kind) + " of '" + name +
                      "' cannot be written as straight-line C: " + join(reasons, "; "));
  c::SourceNames names{identifier(name), {}, {}};
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    names.arguments.push_back(jacobian.input_name(i));
  for (std::size_t i = 0; i < program.outputs().size(); ++i)
    names.outputs.push_back(c_name(jacobian.result_name(i)));
  const c::Source source = c::emit_c(scalar::scalarize(program), names, patterns_of(jacobian));

  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError("cannot make the folder '" + folder.string() + "': " + error.message());
  const std::vector<std::filesystem::path> paths{folder / (names.function + ".h"),
                                                 folder / (names.function + ".c")};
  write_file(paths[0], source.header);
  write_file(paths[1], source.source);
  return paths;
}

}  // namespace loipe
