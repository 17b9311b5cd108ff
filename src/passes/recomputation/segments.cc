// SPDX-License-Identifier: Apache-2.0
#include "passes/recomputation/segments.h"

#include <algorithm>

#include "passes/rebuild.h"

namespace loipe {

namespace {

/// More would make the search for the stream slow in programs of many arguments.
constexpr std::size_t kMostArguments = 8;

/// The floating arguments with most elements.
std::vector<Value> large_arguments(const Program& program) {
  std::vector<Value> arguments;
  for (Value argument : program.arguments())
    if (is_floating(program.type(argument).dtype)) arguments.push_back(argument);
  std::ranges::sort(arguments, [&](Value a, Value b) {
    const std::int64_t x = program.type(a).element_count(), y = program.type(b).element_count();
    return x != y ? x > y : a < b;
  });
  if (arguments.size() > kMostArguments) arguments.resize(kMostArguments);
  return arguments;
}

}  // namespace

Segments::Segments(const Program& program, std::size_t forward_outputs, std::size_t stride) {
  find_forward(program, forward_outputs);
  find_stream(program);
  if (cuts.empty()) return;
  find_cuts(program, stride);
  find_stages(program);
}

bool Segments::is_cut(Value v) const { return std::ranges::binary_search(cuts, v); }

void Segments::find_forward(const Program& program, std::size_t forward_outputs) {
  is_forward.assign(program.size(), false);
  for (std::size_t i = 0; i < forward_outputs; ++i) is_forward[program.outputs()[i].index] = true;
  for (auto i = static_cast<std::uint32_t>(program.size()); i-- > 0;)
    if (is_forward[i])
      for (Value operand : program.operands(Value{i})) is_forward[operand.index] = true;
}

void Segments::find_stream(const Program& program) {
  std::size_t most = 0;
  for (Value argument : large_arguments(program)) {
    std::vector<bool> follows(program.size(), false);
    follows[argument.index] = true;
    std::size_t count = 0;
    for (std::uint32_t i = argument.index + 1; i < program.size(); ++i) {
      if (!is_forward[i]) continue;
      for (Value operand : program.operands(Value{i}))
        if (follows[operand.index]) follows[i] = true;
      if (follows[i]) ++count;
    }
    if (count <= most) continue;
    most = count;
    is_stream = std::move(follows);
    cuts = {argument};
  }
}

/// Walks the stream with the set of its values that are still needed there: at a cut it
/// has one element.
void Segments::find_cuts(const Program& program, std::size_t stride) {
  std::vector<std::uint32_t> last_use(program.size(), 0);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (is_stream[i])
      for (Value operand : program.operands(Value{i}))
        if (is_stream[operand.index]) last_use[operand.index] = i;
  std::vector<std::vector<Value>> ends(program.size());
  std::vector<Value> found;
  std::size_t live = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (!is_stream[i]) continue;
    for (std::size_t k = 0; k < ends[i].size(); ++k) --live;
    if (last_use[i] == 0) continue;
    ends[last_use[i]].push_back(Value{i});
    // A cut is the value just computed: an older one that is alone was a cut before.
    if (++live == 1 && !is_argument(program, Value{i})) found.push_back(Value{i});
  }
  for (std::size_t k = stride - 1; k < found.size(); k += stride) cuts.push_back(found[k]);
  segment.assign(program.size(), kNone);
  std::size_t now = 0;
  for (std::uint32_t i = cuts[0].index; i < program.size(); ++i) {
    if (!is_stream[i]) continue;
    segment[i] = now;
    if (now + 1 < cuts.size() && cuts[now + 1].index == i) ++now;
  }
}

void Segments::find_stages(const Program& program) {
  stage.assign(program.size(), kNone);
  std::vector<std::size_t> begins(program.size(), kNone);
  for (std::size_t k = 0; k < cuts.size(); ++k) begins[cuts[k].index] = k;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (is_forward[i]) continue;
    for (Value operand : program.operands(Value{i})) {
      const std::uint32_t o = operand.index;
      const std::size_t used = begins[o] != kNone ? begins[o] : is_stream[o] ? segment[o] : stage[o];
      stage[i] = std::min(stage[i], used);
    }
  }
}

}  // namespace loipe
