// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace loipe::jit {

/// How much the code generator should think. `quick` translates instruction by
/// instruction; `full` schedules and allocates registers globally; `moderate` lies between.
enum class Level { quick, moderate, full };

/// Which multiplications and additions become one instruction with one rounding.
enum class Contraction { anywhere, explicit_only };

/// Width of the vectors that the running CPU adds and multiplies in one instruction,
/// in bytes: 64, 32 or 16. LOIPE_SIMD chooses a narrower one (see kernels_of_this_cpu).
int vector_bytes();

/// Machine code in memory. Code stays as long as the session lives.
class Session {
 public:
  explicit Session(Level level, Contraction contraction = Contraction::anywhere);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Names the code that `content` becomes here: a digest of it and of all else that
  /// decides (code generator, its level and options, processor, versions).
  std::string key(std::string_view content) const;
  /// Takes the code of that key from the cache on disk; false when it is not there.
  bool load(const std::string& key);

  /// A context and an empty module for the running CPU.
  llvm::LLVMContext& context();
  std::unique_ptr<llvm::Module> new_module(const std::string& name);
  /// Compiles the module and caches the code under the key, unless that is empty;
  /// InternalError when the module is malformed.
  void add(std::unique_ptr<llvm::Module> module, const std::string& key = "");
  /// The address of a function that was added.
  void* address(const std::string& function);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loipe::jit
