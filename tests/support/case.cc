// SPDX-License-Identifier: Apache-2.0
#include "support/case.h"

#include <exception>
#include <memory>

#include "ir/printer.h"

namespace loipe::testing {

std::string to_string(const Case& c) {
  std::string text = program_to_text(c.program);
  for (std::size_t i = 0; i < c.arguments.size(); ++i)
    text += Attributes{{c.program.argument_name(i), std::make_shared<const Tensor>(c.arguments[i])}}.print() +
            "\n";
  return text;
}

std::string violation_of(const Property& property, const Case& c) {
  try {
    return property(c);
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  }
}

}  // namespace loipe::testing
