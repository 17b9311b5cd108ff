// SPDX-License-Identifier: Apache-2.0
// Times batches of the small benchmark functions in every order and layout, dense and
// structural non-zeros only, and prints tables as Markdown (benchmarks/small_functions.md):
//
//   loipe_small_functions [--tasks NAMES] [--batches NUMBERS] [--dtypes NAMES] [--rounds R]
//
// Every contestant is first compared with float64 in reverse order at the same inputs.
// Then all of one task, batch and dtype run in turns, a few short runs at a time; the
// shortest run counts, because other work on the machine only ever adds.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "base/text.h"
#include "driver/machine.h"
#include "driver/sparse_pattern.h"
#include "driver/task_jacobian.h"
#include "tasks/inputs.h"

namespace {

using namespace loipe;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 20240607;  // that of `loipe bench`
const std::vector<std::string> kOrders{"forward", "reverse", "markowitz", "alphagrad"};
/// The forms of the results; inputs have the same layout.
struct Form {
  const char* name;
  BatchLayout layout;
  BlockValues values;
};
constexpr Form kForms[] = {{"AoS", BatchLayout::array_of_structures, BlockValues::all},
                           {"SoA", BatchLayout::structure_of_arrays, BlockValues::all},
                           {"sparse", BatchLayout::structure_of_arrays, BlockValues::entries}};

struct Options {
  std::vector<std::string> tasks{"RoeFlux_1d",       "RoeFlux_3d",        "RobotArm_6DOF",
                                 "HumanHeartDipole", "PropaneCombustion", "BlackScholes_Jacobian"};
  std::vector<std::string> batches{"512", "65536"}, dtypes{"f64", "f32"};
  int rounds = 40;
};

/// Memory of all arrays of one side, each at a cache line of its own residue.
class Arrays {
 public:
  Arrays(std::span<const TensorType> examples, const std::vector<bool>& is_shared, std::int64_t batch,
         BatchLayout layout)
      : layout_(layout), batch_(batch) {
    for (std::size_t i = 0; i < examples.size(); ++i) {
      const std::int64_t line = 64 / static_cast<std::int64_t>(size_of(examples[i].dtype));
      if (layout == BatchLayout::structure_of_arrays) stride_ = (batch + line - 1) / line * line + line;
      const std::int64_t n = examples[i].element_count();
      const bool is_one = !is_shared.empty() && is_shared[i];
      const std::int64_t size = is_one || n == 0 ? n : stride_ > 0 ? (n - 1) * stride_ + batch : n * batch;
      tensors_.emplace_back(TensorType{examples[i].dtype, {size}});
    }
  }

  std::int64_t stride() const { return stride_; }
  std::vector<Tensor>& tensors() { return tensors_; }
  /// Element e of example b where an example has n.
  std::int64_t place(std::int64_t n, std::int64_t e, std::int64_t b) const {
    return layout_ == BatchLayout::structure_of_arrays ? e * stride_ + b : b * n + e;
  }

 private:
  BatchLayout layout_;
  std::int64_t batch_, stride_ = 0;
  std::vector<Tensor> tensors_;
};

/// One order, form and number of threads.
class Contestant {
 public:
  Contestant(const Subject& subject, const TaskJacobianOptions& options, const Form& form,
             std::span<const Tensor> inputs)
      : jacobian_(subject, options),
        executable_(jacobian_.executable()),
        batch_(options.batch.examples),
        is_shared_(shared_arguments(options.batch)),
        in_(executable_.argument_types(), is_shared_, batch_, form.layout),
        out_(executable_.output_types(), {}, batch_, form.layout),
        layouts_{form.layout, form.layout, in_.stride(), out_.stride()} {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::int64_t n = executable_.argument_types()[i].element_count();
      for (std::int64_t k = 0; k < inputs[i].element_count(); ++k)
        in_.tensors()[i].set(is_shared_[i] ? k : in_.place(n, k % n, k / n), inputs[i].at(k));
    }
    for (Tensor& tensor : in_.tensors()) arguments_.push_back(tensor.bytes());
    for (Tensor& tensor : out_.tensors()) results_.push_back(tensor.bytes());
  }

  void run() { executable_.run_batch(batch_, arguments_, is_shared_, results_, layouts_); }

  /// The largest deviation from dense results, in units of the largest of a block.
  double error(std::span<const Tensor> reference) {
    run();
    double worst = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const std::size_t block = i - jacobian_.output_count();
      const bool is_sparse = i >= jacobian_.output_count() && !jacobian_.compilation().patterns.empty();
      const Tensor expected =
          is_sparse ? values_at(jacobian_.compilation().patterns[block], reference[i], true) : reference[i];
      const std::int64_t n = executable_.output_types()[i].element_count();
      double unit = std::numeric_limits<double>::min(), most = 0;
      for (std::int64_t k = 0; k < expected.element_count(); ++k) {
        unit = std::max(unit, std::abs(expected.at(k)));
        most = std::max(most, std::abs(out_.tensors()[i].at(out_.place(n, k % n, k / n)) - expected.at(k)));
      }
      worst = std::max(worst, most / unit);
    }
    return worst;
  }

  /// Nanoseconds of one example, the least of a few runs.
  void take_turn() {
    run();  // the caches are the others'
    const Clock::time_point turn = Clock::now();
    do {
      const Clock::time_point start = Clock::now();
      run();
      const auto elapsed = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
      best_ = std::min(best_, elapsed / static_cast<double>(batch_));
    } while (Clock::now() - turn < std::chrono::milliseconds(1));
  }
  double best() const { return best_; }
  double operations() const {
    const bool is_axis = jacobian_.batch().kind == BatchPlan::Kind::axis;
    return static_cast<double>(jacobian_.compilation().executed.total()) /
           (is_axis ? static_cast<double>(batch_) : 1);
  }

 private:
  static std::vector<bool> shared_arguments(const BatchPlan& plan) {
    std::vector<bool> result;
    for (std::size_t i = 0; i < plan.batched.size(); ++i) result.push_back(!plan.is_batched(i));
    return result;
  }

  TaskJacobian jacobian_;
  const Executable& executable_;
  std::int64_t batch_;
  std::vector<bool> is_shared_;
  Arrays in_, out_;
  BatchLayouts layouts_;
  std::vector<ConstBytes> arguments_;
  std::vector<Bytes> results_;
  double best_ = 1e30;
};

TaskJacobianOptions options_of(const Subject& subject, const std::string& order, DType dtype) {
  TaskJacobianOptions options;
  options.order = order;
  options.dtype = dtype;
  options.batch = plan_batch(subject, {}, subject.task()->batched_arguments);
  return options;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.1f" : "%.0f", value);
  return text;
}

/// All contestants of a task, batch and dtype; [threads][form][order].
struct Group {
  std::vector<std::unique_ptr<Contestant>> all;

  Group(const std::string& task, std::int64_t batch, DType dtype, int rounds) {
    const Subject subject({task, {}, batch});
    const std::vector<Tensor> inputs =
        task_inputs(*subject.task(), {subject.scale(), batch, dtype}, InputKind::rich, kSeed);
    std::vector<Tensor> exact;
    for (const Tensor& input : inputs) exact.push_back(input.converted(DType::f64));
    const std::vector<Tensor> reference =
        TaskJacobian(subject, options_of(subject, "reverse", DType::f64)).run(exact);
    for (int threads : {1, 2})
      for (const Form& form : kForms)
        for (const std::string& order : kOrders) {
          TaskJacobianOptions options = options_of(subject, order, dtype);
          options.threads = threads;
          options.block_values = form.values;
          all.push_back(std::make_unique<Contestant>(subject, options, form, inputs));
          const double error = all.back()->error(reference);
          if (!(error < (dtype == DType::f64 ? 1e-9 : 1e-3)))
            throw std::runtime_error(task + ", " + order + ", " + form.name + " is wrong by " +
                                     std::to_string(error));
        }
    for (int round = 0; round < rounds; ++round)
      for (const auto& contestant : all) contestant->take_turn();
  }

  const Contestant& of(int threads, std::size_t form, std::size_t order) const {
    return *all[(static_cast<std::size_t>(threads - 1) * std::size(kForms) + form) * kOrders.size() + order];
  }
  std::size_t best_order(int threads, std::size_t form) const {
    std::size_t best = 0;
    for (std::size_t order = 1; order < kOrders.size(); ++order)
      if (of(threads, form, order).best() < of(threads, form, best).best()) best = order;
    return best;
  }
};

void print_row(const std::string& task, const Group& group, double peak) {
  std::string row = "| " + task;
  for (int threads : {1, 2})
    for (std::size_t form = 0; form < std::size(kForms); ++form) {
      const std::size_t best = group.best_order(threads, form);
      row += " | " + number(group.of(threads, form, 1).best()) + " | " +
             number(group.of(threads, form, best).best()) + " " + kOrders[best].substr(0, 1);
    }
  const Contestant& dense = group.of(1, 1, 1);
  const double gflops = dense.operations() / dense.best();
  std::cout << row << " | " << number(gflops) << " | " << number(100 * gflops / peak) << " % |" << std::endl;
}

void print_table(const Options& options, std::int64_t batch, DType dtype) {
  const double peak = measure_speed(dtype, 1).fma_gflops;
  std::cout << "\n## " << to_string(dtype) << ", batch " << batch << "\n\n"
            << "One thread's FMA loop: " << number(peak) << " GFLOP/s.\n\n| task";
  std::string rule = "| ---";
  for (const char* threads : {"1 thread", "2 threads"})
    for (const Form& form : kForms) {
      std::cout << " | " << form.name << ", " << threads << ", reverse | best";
      rule += " | ---: | ---:";
    }
  std::cout << " | GFLOP/s | of peak |\n" << rule << " | ---: | ---: |" << std::endl;
  for (const std::string& task : options.tasks)
    print_row(task, Group(task, batch, dtype, options.rounds), peak);
}

void run(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) throw UserError("option " + words[i] + " needs a value");
    if (words[i] == "--tasks") options.tasks = split_at_commas(words[i + 1]);
    else if (words[i] == "--batches") options.batches = split_at_commas(words[i + 1]);
    else if (words[i] == "--dtypes") options.dtypes = split_at_commas(words[i + 1]);
    else if (words[i] == "--rounds") options.rounds = std::stoi(words[i + 1]);
    else throw UserError("unknown option " + words[i]);
  }
  const Machine machine = this_machine();
  std::cout << machine.cpu << " (" << machine.simd << ", " << machine.cores << " cores)\n";
  for (const std::string& dtype : options.dtypes)
    for (const std::string& batch : options.batches)
      print_table(options, std::stoll(batch), parse_dtype(dtype));
}

}  // namespace

int main(int count, char** words) {
  try {
    run({words + 1, words + count});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "loipe_small_functions: " << error.what() << "\n";
    return 2;
  }
}
