// SPDX-License-Identifier: Apache-2.0
#include "backends/c/values.h"

#include <algorithm>
#include <cstring>

#include "backends/c/elementwise.h"
#include "backends/c/movement.h"
#include "backends/c/nests.h"
#include "ir/op_def.h"

namespace loipe::c {

namespace {

/// More nodes in one loop nest would only make its function long.
constexpr int kLargestNest = 200;

bool is_uniform(const Tensor& tensor) {
  const std::size_t size = size_of(tensor.dtype());
  const std::span<const std::byte> bytes = tensor.bytes();
  for (std::size_t i = size; i < bytes.size(); i += size)
    if (std::memcmp(bytes.data(), bytes.data() + i, size) != 0) return false;
  return !bytes.empty();
}

/// The one node in whose loops a value is read.
constexpr std::uint32_t kNone = ~std::uint32_t{0}, kSeveral = kNone - 1;

/// Goes from users to operands, so that all that is asked of a value is known when its turn comes.
class Planner {
 public:
  explicit Planner(const Program& program)
      : program_(program), asked_(program.size()), plan_(program.size()), nest_size_(program.size()) {}

  std::vector<PlannedValue> run() {
    for (std::size_t k = program_.outputs().size(); k-- > 0;) {
      Asked& asked = asked_[program_.outputs()[k].index];
      asked.is_used = asked.is_output = true;
      asked.output = k;
    }
    for (std::size_t i = program_.size(); i-- > 0;)
      if (asked_[i].is_used) plan(Value{static_cast<std::uint32_t>(i)});
    for (std::size_t k = 0; k < program_.arguments().size(); ++k)
      plan_[program_.arguments()[k].index] = {Form::argument, k};
    return std::move(plan_);
  }

 private:
  struct Asked {
    bool is_used = false, is_output = false;
    bool in_memory = false;  ///< a pointer to the elements
    bool repeated = false;   ///< elements are read several times
    std::size_t output = 0;
    std::uint32_t nest = kNone;
    int depth = 0;  ///< of the expression that it would be inlined in
  };

  std::string_view op(Value v) const { return program_.op(v).name.value; }

  void plan(Value v) {
    const Form form = form_of(v);
    plan_[v.index] = {form, form == Form::output ? asked_[v.index].output : 0};
    const bool is_inlined = form == Form::inlined;
    const std::uint32_t nest = is_inlined ? asked_[v.index].nest : v.index;
    if (is_inlined && nest < kSeveral) ++nest_size_[nest];
    if (form == Form::table || form == Form::literal) return;
    const Nest* loops = find_nest(op(v));
    const std::size_t operands = op(v) == "after" || is_movement(program_, v)
                                     ? std::min<std::size_t>(1, program_.operands(v).size())
                                     : program_.operands(v).size();
    for (std::size_t k = 0; k < operands; ++k) {
      Asked& asked = asked_[program_.operands(v)[k].index];
      asked.is_used = true;
      asked.depth = std::max(asked.depth, is_inlined ? asked_[v.index].depth + 1 : 0);
      asked.nest = asked.nest == kNone || asked.nest == nest ? nest : kSeveral;
      const bool repeats = element_count(v) > element_count(program_.operands(v)[k]);
      const bool is_nest = !is_elementwise(op(v)) && !is_movement(program_, v);
      asked.in_memory |= form == Form::alias || (is_nest && loops && loops->reads == Reads::in_memory);
      asked.repeated |= is_nest ? loops && loops->reads == Reads::repeated
                                : repeats || (is_inlined && asked_[v.index].repeated);
    }
  }

  std::int64_t element_count(Value v) const { return program_.type(v).element_count(); }

  Form form_of(Value v) const {
    const Asked& asked = asked_[v.index];
    if (op(v) == "argument") return Form::argument;
    if (op(v) == "attention_report") return Form::table;
    if (op(v) == "constant")
      return !asked.in_memory && is_uniform(program_.attributes(v).tensor("value")) ? Form::literal
                                                                                    : Form::table;
    if (op(v) == "reshape" && !is_movement(program_, v)) return Form::alias;
    if (asked.is_output) return Form::output;
    if (asked.in_memory || asked.depth >= kLargestNest) return Form::work;
    if (is_movement(program_, v) || op(v) == "iota") return Form::inlined;
    const bool is_cheap = is_elementwise(op(v)) && !asked.repeated && asked.nest != kSeveral;
    return is_cheap && nest_size_[asked.nest] < kLargestNest ? Form::inlined : Form::work;
  }

  const Program& program_;
  std::vector<Asked> asked_;
  std::vector<PlannedValue> plan_;
  std::vector<int> nest_size_;
};

}  // namespace

std::vector<PlannedValue> plan_values(const Program& program) { return Planner(program).run(); }

}  // namespace loipe::c
