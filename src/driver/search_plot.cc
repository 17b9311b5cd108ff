// SPDX-License-Identifier: Apache-2.0
#include "driver/counted_cost.h"
#include "driver/plot.h"
#include "driver/search.h"

namespace loipe {

namespace {

double shown(Objective objective, std::int64_t cost) {
  return objective == Objective::time ? 1e-6 * static_cast<double>(cost) : static_cast<double>(cost);
}

}  // namespace

/// One curve per method: from the cost that it met on, the costs that it reached.
std::string search_plot(const Subject& subject, const Program& program, const SubjectSearch& found,
                        const SubjectSearchOptions& options) {
  Plot plot;
  const Objective objective = options.objective;
  const std::string unit = objective == Objective::time ? "microseconds, predicted" : unit_of(objective);
  plot.title = subject.name() + ": search for the least cost (" + to_string(objective) + ")";
  plot.x_label = "seconds";
  plot.y_label = unit;
  const auto curve_of = [&](const std::string& method) -> PlotCurve& {
    for (PlotCurve& curve : plot.curves)
      if (curve.name == method) return curve;
    plot.curves.push_back({method, {}});
    return plot.curves.back();
  };
  const std::vector<search::HistoryPoint>& history = found.result.history;
  for (std::size_t k = 0; k < history.size(); ++k) {
    PlotCurve& curve = curve_of(history[k].method);
    const bool continues = k > 0 && history[k - 1].method == history[k].method;
    if (k > 0 && !continues)
      curve.points.emplace_back(history[k].seconds, shown(objective, history[k - 1].cost));
    curve.points.emplace_back(history[k].seconds, shown(objective, history[k].cost));
  }
  if (!history.empty())
    curve_of(history.back().method)
        .points.emplace_back(found.result.seconds, shown(objective, found.result.cost));

  const CountedCost counted(subject, program, objective, options.constants);
  for (const search::KnownOrder& known : known_orders(subject, program)) {
    const EliminationOrder order{known.name, known.vertices};
    const std::optional<std::int64_t> cost = objective == Objective::published
                                                 ? published_count(subject, program, order, options.graph)
                                                 : std::optional(counted.of(order).cost);
    if (cost) plot.lines.push_back({known.name, shown(objective, *cost)});
  }
  if (found.result.lower_bound)
    plot.lines.push_back({"lower bound", shown(objective, *found.result.lower_bound)});
  // A line far above all else would press the curves flat.
  std::erase_if(plot.lines, [&](const PlotLine& line) {
    return line.value > 2 * shown(objective, found.result.cost) && line.name != "alphagrad";
  });
  return to_svg(plot);
}

}  // namespace loipe
