// SPDX-License-Identifier: Apache-2.0
#include "driver/subject.h"

#include "driver/retype.h"
#include "ir/parser.h"

namespace loipe {

namespace {

constexpr std::int64_t kTransformerScale = 16;

void check_scale(const std::optional<std::int64_t>& scale, const std::string& name, bool has_scale) {
  if (!scale) return;
  if (!has_scale)
    throw UserError("--scale " + std::to_string(*scale) + ": '" + name +
                    "' has one size only; --scale exists for Encoder, EncoderDecoder and Perceptron");
  if (*scale < 1) throw UserError("--scale " + std::to_string(*scale) + ": expected 1 or more");
}

}  // namespace

bool is_program_file(const std::string& name) { return name.ends_with(".loipe"); }

Subject::Subject(const SubjectRequest& request) : name_(request.name), batch_(request.batch) {
  if (batch_ && *batch_ < 1) throw UserError("--batch " + std::to_string(*batch_) + ": expected 1 or more");
  if (is_program_file(request.name)) {
    check_scale(request.scale, request.name, false);
    file_program_ = read_program(request.name);
    return;
  }
  const bool is_transformer = request.name == "transformer";
  task_ = &find_task(is_transformer ? "Encoder" : request.name);
  name_ = task_->name;
  check_scale(request.scale, name_, task_->has_scale);
  scale_ = request.scale.value_or(is_transformer ? kTransformerScale : 1);
}

std::vector<std::string> Subject::argument_names() const {
  std::vector<std::string> names;
  if (task_) {
    for (const Argument& argument : task_->arguments({})) names.push_back(argument.name);
  } else {
    for (std::size_t i = 0; i < file_program_->arguments().size(); ++i)
      names.push_back(file_program_->argument_name(i));
  }
  return names;
}

bool Subject::is_floating_argument(std::size_t position) const {
  if (task_) return is_floating(task_->arguments({}).at(position).type.dtype);
  return is_floating(file_program_->type(file_program_->arguments()[position]).dtype);
}

bool Subject::mixes_precisions() const { return file_program_ && loipe::mixes_precisions(*file_program_); }

Program Subject::program(std::optional<DType> dtype) const {
  if (!task_) return dtype ? retyped(*file_program_, *dtype) : *file_program_;
  return task_->build({scale_, has_batch_axis() ? batch_.value_or(1) : 1, dtype.value_or(DType::f32)});
}

void Subject::refuse_example_batch(const std::string& command) const {
  if (batch_ && !has_batch_axis())
    throw UserError("--batch " + std::to_string(*batch_) + ": '" + name_ +
                    "' describes one example and has no batch axis, so '" + command +
                    "' takes no --batch for it");
}

}  // namespace loipe
