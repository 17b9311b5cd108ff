// SPDX-License-Identifier: Apache-2.0
#include "driver/emit_source.h"

#include "backends/c/emit_c.h"
#include "base/file.h"
#include "base/text.h"
#include "driver/output_file.h"

namespace loipe {

namespace {

std::vector<c::Pattern> patterns_of(const TaskJacobian& jacobian) {
  std::vector<c::Pattern> patterns;
  for (std::size_t i = 0; i < jacobian.result_types().size(); ++i)
    if (jacobian.has_pattern(i)) {
      SparsePattern pattern = jacobian.pattern(i);
      const bool is_full = std::ssize(pattern.rows) == jacobian.dense_type(i).element_count();
      patterns.push_back({c::identifier_characters(jacobian.result_name(i)), std::move(pattern.rows),
                          std::move(pattern.columns), is_full});
    }
  return patterns;
}

}  // namespace

std::vector<std::filesystem::path> emit_c_source(const TaskJacobian& jacobian, const std::string& name,
                                                 const std::filesystem::path& folder) {
  const Program& program = jacobian.compilation().optimised;
  if (const auto reasons = c::reasons_against(program); !reasons.empty())
    throw Unsupported("the " + to_string(jacobian.request().kind) + " of '" + name +
                      "' cannot be written as C: " + join(reasons, "; "));
  c::SourceNames names{
      "loipe_" + c::identifier_characters(std::filesystem::path(name).stem().string()), {}, {}};
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    names.arguments.push_back(jacobian.tensor_name(i));
  for (std::size_t i = 0; i < program.outputs().size(); ++i) names.outputs.push_back(jacobian.result_name(i));
  const c::Source source = c::emit_c(program, names, patterns_of(jacobian));

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
