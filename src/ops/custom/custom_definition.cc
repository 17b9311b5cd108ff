// SPDX-License-Identifier: Apache-2.0
#include "ops/custom/custom_definition.h"

#include <map>
#include <memory>
#include <mutex>

#include "base/text.h"

namespace loipe {

namespace {

/// Definitions are never removed or changed, so a reference to one stays valid.
class CustomOpList {
 public:
  void add(CustomDefinition definition) {
    const std::lock_guard lock(mutex_);
    const std::string name = definition.name;
    const bool is_new =
        definitions_.try_emplace(name, std::make_unique<const CustomDefinition>(std::move(definition)))
            .second;
    if (!is_new)
      throw UserError(
          "the custom op '" + name +
          "' is already defined in this process; define it once, for instance as a static object");
  }

  const CustomDefinition& find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto place = definitions_.find(name);
    if (place != definitions_.end()) return *place->second;
    std::vector<std::string> names;
    for (const auto& [known, definition] : definitions_) names.push_back(known);
    throw UserError("no custom op '" + std::string(name) + "' is defined in this process" +
                    did_you_mean(name, names) +
                    "; make its CustomOp before a program with it is read (loipe/custom_op.h)");
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const CustomDefinition>, std::less<>> definitions_;
};

CustomOpList& custom_ops() {
  static CustomOpList list;
  return list;
}

}  // namespace

void define_custom_op(CustomDefinition definition) { custom_ops().add(std::move(definition)); }
const CustomDefinition& find_custom_op(std::string_view name) { return custom_ops().find(name); }

}  // namespace loipe
