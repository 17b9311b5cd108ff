// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "tasks/task.h"

namespace loipe {

/// How the caller names what a command works on.
struct SubjectRequest {
  std::string name;                   ///< a task, an alias, `transformer`, or a path that ends in .loipe
  std::optional<std::int64_t> scale;  ///< absent: the option was not given
  std::optional<std::int64_t> batch;
};

/// A function to differentiate: a built-in task at a size, or the program of a file.
class Subject {
 public:
  /// Checks the request and reads the file, but traces nothing yet. UserError for an
  /// unknown task and for a scale where there is none; FileError for the file.
  explicit Subject(const SubjectRequest& request);

  /// The task's canonical name, or the file's path.
  const std::string& name() const { return name_; }
  /// Null for a program file.
  const Task* task() const { return task_; }
  /// The canonical task name, empty for a program file: what published orders go by.
  std::string task_name() const { return task_ ? task_->name : ""; }
  std::int64_t scale() const { return scale_; }
  /// Absent: no `--batch` was given.
  std::optional<std::int64_t> batch() const { return batch_; }
  /// The program itself has a batch axis, of extent batch or 1.
  bool has_batch_axis() const { return task_ && task_->has_batch_axis; }

  std::vector<std::string> argument_names() const;
  /// Whether that argument is floating.
  bool is_floating_argument(std::size_t position) const;

  /// A program file that has both f32 and f64 values.
  bool mixes_precisions() const;

  /// The program, its floating values in this dtype; without one in f32 (tasks) or as
  /// written (program files).
  Program program(std::optional<DType> dtype = {}) const;

  /// UserError if a batch was given although the program has no batch axis.
  void refuse_example_batch(const std::string& command) const;

 private:
  std::string name_;
  const Task* task_ = nullptr;
  std::int64_t scale_ = 1;
  std::optional<std::int64_t> batch_;
  std::optional<Program> file_program_;
};

/// Whether the name is that of a program file.
bool is_program_file(const std::string& name);

}  // namespace loipe
