// SPDX-License-Identifier: Apache-2.0
#include "driver/subject_order.h"

#include <algorithm>

#include "orders/best_orders.h"
#include "orders/published/markowitz.h"
#include "orders/published_graph.h"
#include "orders/published_orders.h"

namespace loipe {

namespace {

bool has_reference_defect(const Subject& subject) { return subject.task_name() == "BlackScholes_Jacobian"; }

constexpr std::string_view kBest = "best";

/// `best` or `best-OBJECTIVE`.
bool is_best(std::string_view name) { return name == kBest || name.starts_with("best-"); }

/// A shipped order that search found. Without an order for the objective, that for the cost
/// which is nearest to it.
EliminationOrder shipped_order(const std::string& name, const Subject& subject, const Program& program,
                               Objective objective) {
  const bool is_named = name != kBest;
  if (is_named) objective = parse_objective(name.substr(kBest.size() + 1), "order '" + name + "'");
  const BestOrder* found = nullptr;
  for (int k = std::min(static_cast<int>(objective), static_cast<int>(Objective::folded)); k >= 0 && !found;
       --k)
    found = best_order(subject.task_name(), to_string(static_cast<Objective>(k)), subject.scale());
  if (found == nullptr)
    throw UserError(
        "there is no order '" + name + "' for '" + subject.name() +
        "': it exists for the built-in functions; try loipe search, or forward, reverse or markowitz");
  EliminationOrder order{name, found->vertices};
  validate_order(program, order);
  return order;
}

}  // namespace

published::Graph published_graph(const Subject& subject, const Program& program, PublishedGraph which) {
  const bool with_defect = which == PublishedGraph::reference && has_reference_defect(subject);
  return published::build_graph(published::published_spec(program), {.drop_variable_alias = with_defect});
}

EliminationOrder subject_order(const std::string& name_or_file, const Subject& subject,
                               const Program& program, PublishedGraph which, Objective best) {
  if (is_best(name_or_file)) return shipped_order(name_or_file, subject, program, best);
  if (name_or_file == "markowitz" && has_reference_defect(subject))
    return {name_or_file, published::markowitz_order(published_graph(subject, program, which))};
  static const std::string kOtherNames[] = {"best"};
  return resolve_order(name_or_file, program, subject.task_name(), kOtherNames);
}

std::vector<std::string> subject_order_names(const Subject& subject) {
  std::vector<std::string> names;
  for (const std::string& name : order_names()) {
    const bool is_published = name == "markowitz-published" || name == "alphagrad";
    if (!is_published || !published_order(subject.task_name(), name).empty()) names.push_back(name);
  }
  for (const Objective objective : {Objective::published, Objective::actual, Objective::folded})
    if (best_order(subject.task_name(), to_string(objective), subject.scale()) != nullptr)
      names.push_back("best-" + to_string(objective));
  return names;
}

}  // namespace loipe
