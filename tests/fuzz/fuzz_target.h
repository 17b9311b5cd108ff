// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace loipe::testing {

/// A function that must survive any bytes. Where the bytes are refused, that is an
/// error of the caller's kind; anything else that it throws is a fault of Loipe.
struct FuzzTarget {
  std::string_view name;  ///< also of its folder in tests/fuzz/corpus
  void (*run)(std::span<const std::uint8_t> bytes);
};

/// All of them; libfuzzer_main.cc feeds one of them with mutations, corpus_test.cc
/// each with its corpus.
std::span<const FuzzTarget> all_fuzz_targets();
/// InternalError for a name that no target has.
const FuzzTarget& find_fuzz_target(std::string_view name);

void fuzz_ir_text(std::span<const std::uint8_t> bytes);
void fuzz_safetensors(std::span<const std::uint8_t> bytes);
void fuzz_order_file(std::span<const std::uint8_t> bytes);
void fuzz_laws(std::span<const std::uint8_t> bytes);

/// Whether `read` refuses its input. The refusal must be an error of the caller's
/// kind with one sentence: on one line, printable (no byte of a hostile file may reach
/// a terminal as a command), and bounded, however large the input. InternalError
/// otherwise; other exceptions pass.
bool is_refused(const std::function<void()>& read);

/// A file in memory, for readers that take paths.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace loipe::testing
