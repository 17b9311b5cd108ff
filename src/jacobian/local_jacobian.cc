// SPDX-License-Identifier: Apache-2.0
#include "jacobian/local_jacobian.h"

#include <algorithm>

#include "base/text.h"

namespace loipe {

std::int64_t Term::stored_elements() const {
  std::vector<Label> labels;
  for (const auto* labelled : {&value, &mask})
    if (*labelled) labels.insert(labels.end(), (*labelled)->axes.begin(), (*labelled)->axes.end());
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return count_assignments(labels, extents);
}

namespace {

std::string describe(const LabelledValue& labelled) {
  std::string text = "v" + std::to_string(labelled.value.index) + "[";
  for (std::size_t i = 0; i < labelled.axes.size(); ++i)
    text += (i ? "," : "") + label_name(labelled.axes[i]);
  return text + "]";
}

}  // namespace

std::string to_string(const Term& term) {
  std::string text = "(" + print_coordinates(term.out) + " | " + print_coordinates(term.in) + ")";
  for (std::size_t label = 0; label < term.extents.size(); ++label)
    text += (label ? ", " : " ") + label_name(static_cast<Label>(label)) + "<" +
            std::to_string(term.extents[label]);
  text += " : ";
  if (!term.value) text += format_double(term.coefficient);
  else text += (term.coefficient < 0 ? "-" : "") + describe(*term.value);
  if (term.mask) text += " where " + describe(*term.mask);
  return text;
}

std::string to_string(const LocalJacobian& jacobian) {
  if (jacobian.implicit) return "implicit";
  std::string text = jacobian.terms.empty() ? "zero" : "";
  for (std::size_t i = 0; i < jacobian.terms.size(); ++i)
    text += (i ? " + " : "") + to_string(jacobian.terms[i]);
  return text;
}

}  // namespace loipe
