// SPDX-License-Identifier: Apache-2.0
#include "driver/explain.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "driver/counts.h"
#include "driver/pipeline.h"
#include "ir/printer.h"
#include "orders/moves.h"

namespace loipe {

namespace {

std::string number(std::size_t value) { return with_thousands(static_cast<std::int64_t>(value)); }
std::string number(std::int64_t value) { return with_thousands(value); }

std::string milliseconds(double seconds) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.3f ms", 1e3 * seconds);
  return buffer.data();
}

/// A name padded to a column.
std::string label(std::string_view name, std::size_t width = 22) {
  std::string text(name);
  text.resize(std::max(width, name.size() + 1), ' ');
  return text;
}

/// All stages of one subject and order.
class Explanation {
 public:
  Explanation(const Subject& subject, const ExplainOptions& explain, const std::string& dumped_pass = "")
      : subject_(subject),
        program_(subject.program()),
        order_(subject_order(explain.order, subject, program_)) {
    CompileOptions options;
    options.request = {floating_arguments(program_), order_, batch_axis_arguments(subject)};
    options.disabled = explain.disabled;
    options.passes.dump = [&](std::string_view pass, const Program& program) {
      if (pass == dumped_pass) dumped_ = program_to_text(program);
    };
    options.backend_options.report = [&](const BackendPassReport& report) {
      backend_passes_.push_back(report);
      if (report.pass.name == dumped_pass) dumped_ = report.text;
    };
    compilation_ = compile(program_, options);
  }

  /// Nothing where the pass did not run.
  const std::optional<std::string>& dumped() const { return dumped_; }

  std::string program() const { return program_to_text(program_); }
  std::string graph() const { return to_string(accumulation().graph, accumulation().program); }
  std::string dot() const { return to_dot(accumulation().graph, accumulation().program, turns()); }

  std::string order() const {
    if (order_.has_moves()) return order_.name + ": " + to_string(order_.moves, program_) + "\n";
    std::vector<std::string> vertices;
    for (int vertex : order_.vertices) vertices.push_back(std::to_string(vertex));
    return order_.name + ": " + join(vertices, " ") + "\n";
  }

  std::string accumulation_program() const { return program_to_text(accumulation().program); }
  std::string optimised() const { return program_to_text(compilation_.optimised); }

  std::string passes() const {
    std::string text;
    for (const PassReport& pass : compilation_.passes)
      text += label(pass.name, 24) +
              label(number(pass.nodes_before) + " -> " + number(pass.nodes_after) + " nodes", 36) +
              milliseconds(pass.seconds) + "\n";
    for (const BackendPassReport& report : backend_passes_)
      text += label(report.pass.name, 24) +
              label(number(report.before) + " " + std::string(report.pass.from) + " -> " +
                        number(report.after) + " " + std::string(report.pass.to),
                    36) +
              milliseconds(report.seconds) + "\n";
    return text;
  }

  std::string costs() const {
    const OrderCounts c = order_counts(subject_, program_, order_, compilation_);
    const OpCost& e = c.executed;
    return label("published") + (c.published ? number(*c.published) : "-") + " multiplications\n" +
           label("actual") + number(c.actual_multiplications) + " multiplications, " +
           number(c.actual_additions) + " additions\n" + label("folded") + number(c.folded_multiplications) +
           " multiplications, " + number(c.folded_additions) + " additions\n" + label("executed in one run") +
           number(e.multiplications) + " multiplications, " + number(e.additions) + " additions, " +
           number(e.divisions) + " divisions, " + number(e.functions) + " functions\n";
  }

  std::string peak() const {
    return label("one run") + number(compilation_.executable->peak_bytes()) + " bytes\n" +
           label("edges at once") + number(accumulation().statistics.peak_elements) + " numbers\n";
  }

  std::string summary() const {
    const CompGraph& graph = accumulation().graph;
    const EliminationStatistics& s = accumulation().statistics;
    std::string text = subject_.name() + " in " + order_.name + " order\n\n";
    text += label("program") + number(program_.size()) + " nodes, " + number(program_.arguments().size()) +
            " arguments, " + number(program_.outputs().size()) + " outputs\n";
    text += label("graph") + number(graph.vertex_count()) + " vertices, " + number(graph.edge_count()) +
            " edges (inactive parts are pruned)\n";
    text += label("order") + (order_.has_moves()
                                  ? number(order_.moves.size()) + " eliminations of vertices and edges\n"
                                  : number(order_.vertices.size()) + " vertices to eliminate\n");
    text += label("elimination") + number(s.products) + " products of edges, " + number(s.fill_ins) +
            " fill-ins, " + number(s.absorptions) + " absorptions\n";
    text += label("accumulation program") + number(accumulation().program.size()) + " nodes (" +
            number(accumulation().primal_nodes) + " of the function, " +
            number(accumulation().partial_nodes) + " for local Jacobians)\n";
    text += label("optimised program") + number(compilation_.optimised.size()) + " nodes\n\n";
    text += costs() + "\n" + peak() + "\n";
    for (const StageTime& stage : compilation_.times)
      text += label(stage.stage) + milliseconds(stage.seconds) + "\n";
    return text + "\nprint one stage with --stage: " + join(explain_stages(), ", ") + "\n";
  }

 private:
  /// By vertex number, when the order is done with it, from 1. Pruned vertices take no turn.
  std::vector<int> turns() const {
    std::vector<int> eliminated = order_.vertices;
    for (const EliminationMove& move : order_.moves) eliminated.push_back(move.eliminated());
    std::vector<bool> is_there(program_.size() + 1, false);
    for (VertexId v : accumulation().graph.intermediates())
      is_there[static_cast<std::size_t>(accumulation().graph.vertex(v).number)] = true;
    std::vector<int> turns(program_.size() + 1, 0);
    int turn = 0;
    for (int vertex : eliminated)
      if (is_there[static_cast<std::size_t>(vertex)]) turns[static_cast<std::size_t>(vertex)] = ++turn;
    return turns;
  }

  const Accumulation& accumulation() const { return compilation_.accumulation; }

  const Subject& subject_;
  Program program_;
  EliminationOrder order_;
  Compilation compilation_;
  std::vector<BackendPassReport> backend_passes_;
  std::optional<std::string> dumped_;
};

struct Stage {
  const char* name;
  std::string (Explanation::*text)() const;
};

constexpr Stage kStages[] = {{"program", &Explanation::program},
                             {"graph", &Explanation::graph},
                             {"dot", &Explanation::dot},
                             {"order", &Explanation::order},
                             {"accumulation", &Explanation::accumulation_program},
                             {"optimised", &Explanation::optimised},
                             {"passes", &Explanation::passes},
                             {"costs", &Explanation::costs},
                             {"peak", &Explanation::peak}};

}  // namespace

const std::vector<std::string>& explain_stages() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Stage& stage : kStages) list.emplace_back(stage.name);
    return list;
  }();
  return names;
}

std::string explain_stage(const Subject& subject, const ExplainOptions& options, const std::string& stage) {
  for (const Stage& known : kStages)
    if (stage == known.name) return (Explanation(subject, options).*known.text)();
  throw UserError("unknown stage '" + shortened(stage) + "'" + did_you_mean(stage, explain_stages()) +
                  ": expected one of " + join(explain_stages(), ", "));
}

std::string explain_pass(const Subject& subject, const ExplainOptions& options, const std::string& pass) {
  check_pass_names({pass});
  if (std::ranges::find(options.disabled, pass) != options.disabled.end())
    throw UserError("pass '" + pass + "' is to be shown and disabled; expected one of the two");
  const Explanation explanation(subject, options, pass);
  if (!explanation.dumped())
    throw UserError("pass '" + pass + "' does not run for " + subject.name() +
                    "; those that do are listed by --stage passes");
  return *explanation.dumped();
}

std::string explain_summary(const Subject& subject, const ExplainOptions& options) {
  return Explanation(subject, options).summary();
}

}  // namespace loipe
