// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"

namespace loipe::c {

/// The structural non-zeros of one output, row-major flattened.
struct Pattern {
  std::string name;  ///< of the output that it belongs to
  std::vector<std::int64_t> rows, columns;
  bool is_full = false;  ///< all elements: a table would tell nothing
  bool has_tables() const { return !is_full && !rows.empty(); }
};

/// Arguments and outputs as files call them, "in.x" and "jac.0.x": what stands before the point keeps
/// x clear of keywords of C and C++, functions of libm and macros of any header.
struct SourceNames {
  std::string function;  ///< a C identifier
  std::vector<std::string> arguments, outputs;
};

struct Source {
  std::string header;  ///< FUNCTION.h
  std::string source;  ///< FUNCTION.c
};

/// The characters that identifiers have; all others become _.
std::string identifier_characters(std::string text);

/// The function that the caller sees: one pointer per argument and output, and its scratch memory.
class Signature {
 public:
  Signature(const SourceNames& names, std::vector<TensorType> arguments, std::vector<TensorType> outputs);

  const std::string& function() const { return function_; }
  const std::string& argument(std::size_t k) const { return arguments_[k]; }
  const std::string& output(std::size_t k) const { return outputs_[k]; }

  /// With types, as declared, and without, as one function hands them on to the next.
  std::string parameters() const;
  std::string parameter_names() const;

  /// `notes`: further lines about what the function does.
  std::string header(std::size_t work_bytes, const std::vector<Pattern>& patterns,
                     std::span<const std::string> notes) const;
  /// What stands before all functions: includes, and the tables of the patterns.
  std::string preamble(const std::vector<Pattern>& patterns) const;
  /// The function itself, which calls FUNCTION_0, FUNCTION_1, ...
  std::string definition(std::size_t parts) const;
  /// A function that is one part of it.
  std::string part(std::size_t number, const std::string& body) const;

 private:
  std::string function_;
  std::vector<TensorType> argument_types_, output_types_;
  std::vector<std::string> arguments_, outputs_;
};

}  // namespace loipe::c
