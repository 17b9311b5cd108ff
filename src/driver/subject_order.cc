// SPDX-License-Identifier: Apache-2.0
#include "driver/subject_order.h"

#include "orders/best_orders.h"
#include "orders/published/markowitz.h"
#include "orders/published_graph.h"
#include "orders/published_orders.h"

namespace loipe {

namespace {

bool has_reference_defect(const Subject& subject) { return subject.task_name() == "BlackScholes_Jacobian"; }

/// The best of the shipped orders that search found.
EliminationOrder shipped_order(const Subject& subject, const Program& program) {
  const BestOrder* found = best_order(subject.task_name(), "published", subject.scale());
  if (found == nullptr)
    throw UserError(
        "there is no order 'best' for '" + subject.name() +
        "': it exists for the built-in functions; try loipe search, or forward, reverse or markowitz");
  EliminationOrder order{"best", found->vertices};
  validate_order(program, order);
  return order;
}

}  // namespace

published::Graph published_graph(const Subject& subject, const Program& program, PublishedGraph which) {
  const bool with_defect = which == PublishedGraph::reference && has_reference_defect(subject);
  return published::build_graph(published::published_spec(program), {.drop_variable_alias = with_defect});
}

EliminationOrder subject_order(const std::string& name_or_file, const Subject& subject,
                               const Program& program, PublishedGraph which) {
  if (name_or_file == "best") return shipped_order(subject, program);
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
  if (best_order(subject.task_name(), "published", subject.scale()) != nullptr) names.emplace_back("best");
  return names;
}

}  // namespace loipe
