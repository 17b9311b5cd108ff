// SPDX-License-Identifier: Apache-2.0
// Loipe's side of the comparison: a process that is told what to compute, writes the
// results, and then runs as often as it is asked to.
//
//   loipe_versus_worker inputs TASK SCALE BATCH DTYPE FILE
//   loipe_versus_worker serve TASK SCALE BATCH DTYPE ORDER THREADS INPUTS RESULTS
//
// BATCH 0 is a single example without a batch axis. `serve` reads in.* and writes out.*
// and jac.* as `loipe jacobian` does, prints one line of JSON, and answers each line N on
// standard input with the nanoseconds of N runs.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "driver/input_tensors.h"
#include "driver/task_jacobian.h"
#include "tasks/inputs.h"

namespace {

using namespace loipe;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 20240607;  // that of `loipe bench`

Subject subject_of(const std::string& task, std::int64_t scale, std::int64_t batch) {
  SubjectRequest request{task, {}, {}};
  if (find_task(task).has_scale) request.scale = scale;
  if (batch > 0) request.batch = batch;
  return Subject(request);
}

/// Rich inputs in the form of the command line: without a batch no argument has its axis.
void write_inputs(const Subject& subject, DType dtype, const std::string& path) {
  const std::int64_t batch = subject.batch().value_or(0);
  const Task& task = *subject.task();
  std::vector<Tensor> tensors =
      task_inputs(task, {subject.scale(), std::max<std::int64_t>(batch, 1), dtype}, InputKind::rich, kSeed);
  const std::vector<std::string> names = subject.argument_names();
  const BatchPlan plan = plan_batch(subject, {}, task.batched_arguments);
  const std::vector<TensorType> types = plan.argument_types(subject.program(dtype));
  NamedTensors named;
  for (std::size_t i = 0; i < names.size(); ++i) {
    // The same numbers, with or without an axis of extent 1.
    Tensor tensor(types[i]);
    for (std::int64_t k = 0; k < tensor.element_count(); ++k) tensor.set(k, tensors[i].at(k));
    named.emplace_back("in." + names[i], std::move(tensor));
  }
  Metadata metadata;
  metadata["batched"] = batch > 0 ? join(task.batched_arguments, ",") : "";
  metadata["arguments"] = join(names, ",");
  write_safetensors(path, named, metadata);
}

struct Request {
  DType dtype;
  std::string order;
  int threads;
  std::string inputs, results;
};

void serve(const Subject& subject, const Request& request) {
  const SafetensorsFile file = SafetensorsFile::read(request.inputs);
  const Clock::time_point start = Clock::now();
  TaskJacobianOptions options;
  options.order = request.order;
  options.dtype = request.dtype;
  options.threads = request.threads;
  options.batch = plan_batch(subject, {}, subject.task()->batched_arguments);
  const TaskJacobian jacobian(subject, options);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::vector<Tensor> inputs =
      load_inputs(file, request.inputs, subject.argument_names(), jacobian.input_types());
  std::vector<Tensor> results = jacobian.run(inputs);
  NamedTensors named;
  for (std::size_t i = 0; i < results.size(); ++i) named.emplace_back(jacobian.result_name(i), results[i]);
  write_safetensors(request.results, named);
  const nlohmann::json ready{{"prepare_seconds", seconds}, {"versions", {{"loipe", "this tree"}}}};
  std::cout << ready << std::endl;
  for (int count = 0; std::cin >> count;) {
    for (int run = 0; run < count; ++run) {
      const Clock::time_point begin = Clock::now();
      jacobian.run(inputs, results);
      std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count() << ' ';
    }
    std::cout << std::endl;
  }
}

int run(const std::vector<std::string>& words) {
  const bool is_inputs = words.size() == 6 && words[0] == "inputs";
  if (!is_inputs && !(words.size() == 9 && words[0] == "serve"))
    throw UserError(
        "expected inputs TASK SCALE BATCH DTYPE FILE, or serve TASK SCALE BATCH DTYPE ORDER "
        "THREADS INPUTS RESULTS");
  const Subject subject = subject_of(words[1], std::stoll(words[2]), std::stoll(words[3]));
  const DType dtype = parse_dtype(words[4]);
  if (is_inputs) write_inputs(subject, dtype, words[5]);
  else serve(subject, {dtype, words[5], std::stoi(words[6]), words[7], words[8]});
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::cerr << "loipe_versus_worker: " << error.what() << "\n";
    return 2;
  }
}
