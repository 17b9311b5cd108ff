// SPDX-License-Identifier: Apache-2.0
#include "driver/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "driver/deviation.h"
#include "driver/sparse_pattern.h"
#include "driver/task_jacobian.h"

namespace loipe {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 20240607;
constexpr double kRowSeconds = 10;    ///< of repetitions, at most
constexpr double kTurnSeconds = .25;  ///< of one row, before the others have their turn
constexpr double kEnoughSeconds = 2;
constexpr std::size_t kEnoughRuns = 100;
constexpr std::size_t kFewestRuns = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A single example needs no axis, except where the program has one.
Subject with_batch(const Subject& subject) {
  const std::int64_t batch = subject.batch().value_or(1);
  SubjectRequest request{subject.name(), {}, {}};
  if (subject.task()->has_scale) request.scale = subject.scale();
  if (subject.has_batch_axis() || batch > 1) request.batch = batch;
  return Subject(request);
}

/// One order on its way through compiling, proving and timing.
struct Contestant {
  BenchRow row;
  std::unique_ptr<TaskJacobian> jacobian;
  double proof_seconds = 0;     ///< of the first run
  std::vector<double> seconds;  ///< of each run
  double total_seconds = 0;

  bool is_done(const std::optional<std::int64_t>& repetitions) const {
    if (repetitions) return seconds.size() >= static_cast<std::size_t>(*repetitions);
    if (seconds.size() < kFewestRuns) return false;
    return total_seconds >= kRowSeconds || (seconds.size() >= kEnoughRuns && total_seconds >= kEnoughSeconds);
  }
};

class Bench {
 public:
  Bench(const Subject& subject, const BenchOptions& options, const StageNote& note)
      : subject_(with_batch(subject)), options_(options), note_(note) {
    const std::int64_t batch = subject_.batch().value_or(1);
    inputs_ = task_inputs(*subject_.task(), {subject_.scale(), batch, options.dtype}, options.inputs, kSeed);
  }

  BenchResult run() {
    BenchResult result{.task = subject_.name(),
                       .scale = subject_.scale(),
                       .batch = subject_.batch().value_or(1),
                       .dtype = options_.dtype,
                       .inputs = options_.inputs,
                       .flush_subnormals = options_.flush_subnormals,
                       .block_values = options_.block_values,
                       .threads = thread_count(options_.threads),
                       .machine = this_machine(),
                       .speed = {},
                       .rows = {}};
    tell("measuring the machine");
    result.speed = measure_speed(options_.dtype, result.threads);
    tell("computing the reference: float64, reverse order");
    reference_ = reference_results();
    for (const std::string& order : options_.orders) add(order);
    time_all();
    for (Contestant& contestant : contestants_) {
      finish(contestant, result.speed.fma_gflops);
      result.rows.push_back(contestant.row);
    }
    return result;
  }

 private:
  void tell(const std::string& text) const {
    if (note_) note_(text);
  }

  TaskJacobianOptions jacobian_options(const std::string& order, DType dtype) const {
    TaskJacobianOptions options;
    options.disabled = options_.disabled;
    options.order = order;
    options.dtype = dtype;
    options.batch = plan_batch(subject_, {}, subject_.task()->batched_arguments);
    options.backend = options_.backend;
    options.threads = options_.threads;
    options.flush_subnormals = options_.flush_subnormals && dtype == options_.dtype;
    options.block_values = options_.block_values;
    options.use_code_cache = false;  // the time of compiling is a column
    return options;
  }

  std::vector<Tensor> reference_results() const {
    TaskJacobianOptions options = jacobian_options("reverse", DType::f64);
    options.block_values = BlockValues::all;
    options.disabled.clear();
    const TaskJacobian jacobian(subject_, options);
    std::vector<Tensor> inputs;
    for (const Tensor& input : inputs_)
      inputs.push_back(is_floating(input.dtype()) ? input.converted(DType::f64) : input);
    return jacobian.run(inputs);
  }

  /// Of the dense reference what the rows give.
  std::vector<Tensor> comparable_reference(const TaskJacobian& jacobian) const {
    std::vector<Tensor> result = reference_;
    const std::vector<SparsePattern>& patterns = jacobian.compilation().patterns;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      Tensor& block = result[jacobian.output_count() + i];
      block = values_at(patterns[i], block, jacobian.batch().has_caller_axis());
    }
    return result;
  }

  /// With the published inputs of the networks most derivatives are zero but for
  /// rounding, so all are compared with the largest of the whole Jacobian.
  double negligible() const { return options_.inputs == InputKind::published ? 1 : kNegligible; }

  /// Compiles and proves one row.
  void add(const std::string& order) {
    tell(order + ": compiling");
    Contestant contestant;
    contestant.row.order = order;
    const Clock::time_point start = Clock::now();
    contestant.jacobian = std::make_unique<TaskJacobian>(subject_, jacobian_options(order, options_.dtype));
    contestant.row.compile_ms = 1e3 * seconds_since(start);
    const TaskJacobian& jacobian = *contestant.jacobian;
    contestant.row.counts =
        order_counts(subject_, jacobian.program(), jacobian.order(), jacobian.compilation());
    const std::int64_t runs = jacobian.batch().kind == BatchPlan::Kind::loop ? jacobian.batch().examples : 1;
    contestant.row.flops = contestant.row.counts.executed.total() * runs;
    contestant.row.peak_bytes = jacobian.peak_bytes();
    if (results_.empty())
      results_ = std::vector<Tensor>(jacobian.result_types().begin(), jacobian.result_types().end());
    tell(order + ": proving the answer");
    const Clock::time_point proof = Clock::now();
    jacobian.run(inputs_, results_);
    contestant.proof_seconds = seconds_since(proof);
    contestant.row.max_rel_error =
        max_relative_error(results_, comparable_reference(jacobian), jacobian.output_count(), negligible());
    contestants_.push_back(std::move(contestant));
  }

  /// A turn of short runs starts with one that does not count: the caches are the
  /// others'. A long run fills them by itself, and was warmed up when it was proved.
  void take_turn(Contestant& contestant) {
    if (contestant.proof_seconds < kTurnSeconds) contestant.jacobian->run(inputs_, results_);
    const Clock::time_point turn = Clock::now();
    do {
      const Clock::time_point start = Clock::now();
      contestant.jacobian->run(inputs_, results_);
      contestant.seconds.push_back(seconds_since(start));
      contestant.total_seconds += contestant.seconds.back();
    } while (seconds_since(turn) < kTurnSeconds && !contestant.is_done(options_.repetitions));
  }

  void time_all() {
    for (bool is_any_left = true; is_any_left;) {
      is_any_left = false;
      for (Contestant& contestant : contestants_) {
        if (contestant.is_done(options_.repetitions)) continue;
        if (contestant.seconds.empty()) tell(contestant.row.order + ": timing");
        take_turn(contestant);
        is_any_left = true;
      }
    }
  }

  void finish(Contestant& contestant, double fma_gflops) const {
    std::vector<double>& seconds = contestant.seconds;
    std::ranges::sort(seconds);
    const auto quantile = [&](double q) {
      return 1e3 *
             seconds[static_cast<std::size_t>(std::lround(q * static_cast<double>(seconds.size() - 1)))];
    };
    BenchRow& row = contestant.row;
    row.repetitions = static_cast<std::int64_t>(seconds.size());
    row.median_ms = quantile(.5);
    row.p10_ms = quantile(.1);
    row.p90_ms = quantile(.9);
    row.min_ms = quantile(0);
    row.gflops = static_cast<double>(row.flops) / row.median_ms * 1e-6;
    row.fraction_of_peak = row.gflops / fma_gflops;
    row.published_ms = published_times(subject_, row.order);
  }

  /// Transformer at scale 16: AMD EPYC 9684X and NVIDIA RTX 4090, from the results page
  /// of the published experiments.
  static std::optional<PublishedTimes> published_times(const Subject& subject, const std::string& order) {
    if (subject.name() != "Encoder" || subject.scale() != 16) return std::nullopt;
    if (order == "forward") return PublishedTimes{990.09, 21.38};
    if (order == "reverse") return PublishedTimes{39.07, 0.29};
    if (order == "markowitz-published") return PublishedTimes{498.94, 16.17};
    if (order == "alphagrad") return PublishedTimes{40.38, 0.28};
    return std::nullopt;
  }

  Subject subject_;
  BenchOptions options_;
  StageNote note_;
  std::vector<Tensor> inputs_, results_, reference_;
  std::vector<Contestant> contestants_;
};

}  // namespace

BenchResult bench(const Subject& subject, const BenchOptions& options, const StageNote& note) {
  return Bench(subject, options, note).run();
}

}  // namespace loipe
