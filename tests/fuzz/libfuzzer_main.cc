// SPDX-License-Identifier: Apache-2.0
// One target of tests/fuzz/targets as a libFuzzer binary; LOIPE_FUZZ_TARGET is its name.
#include <cstring>
#include <exception>
#include <string>

#include "fuzz/fuzz_target.h"
#include "ir/printer.h"
#include "passes/random_program.h"

using loipe::testing::find_fuzz_target;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto run = find_fuzz_target(LOIPE_FUZZ_TARGET).run;
  run({data, size});  // what it throws ends the process, which libFuzzer reports
  return 0;
}

/// Mutations of bytes, but now and then a whole new program over all ops: they are
/// texts, so an op that is added to the list is fuzzed without a new seed.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  if (std::string_view(LOIPE_FUZZ_TARGET) != "ir_text" || seed % 32 != 0)
    return LLVMFuzzerMutate(data, size, most);
  const std::string text = program_to_text(loipe::RandomProgram(seed / 32, {.special_values = true}).program);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
