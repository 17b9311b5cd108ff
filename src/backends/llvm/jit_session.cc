// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/jit_session.h"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string_view>

#include "base/check.h"

namespace loipe::jit {

namespace {

/// LLVM's bottom-up scheduler stretches live ranges on long straight-line code and
/// costs 1.3 to 1.5x there; top-down keeps our depth-first order. The option is
/// hidden and of the whole process (LLVM 20 calls it -misched-prera-direction). Loop
/// strength reduction takes half of the time of kernels, whose addresses are reduced
/// when they are emitted.
void initialise_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    const char* arguments[] = {"loipe", "-misched-topdown", "-disable-lsr"};
    llvm::cl::ParseCommandLineOptions(static_cast<int>(std::size(arguments)), arguments);
  });
}

template <class T>
T expect(llvm::Expected<T> value, const char* what) {
  if (!value) throw InternalError(std::string(what) + ": " + llvm::toString(value.takeError()));
  return std::move(*value);
}

void expect(llvm::Error error, const char* what) {
  if (error) throw InternalError(std::string(what) + ": " + llvm::toString(std::move(error)));
}

std::string_view forced_simd() {
  const char* text = std::getenv("LOIPE_SIMD");
  return text ? text : "";
}

}  // namespace

int vector_bytes() {
  const std::string_view forced = forced_simd();
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx512 && forced != "avx2" && forced != "baseline") return 64;
  if (avx2 && forced != "baseline") return 32;
#endif
  return 16;
}

struct Session::State {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::orc::ThreadSafeContext context{std::make_unique<llvm::LLVMContext>()};
  std::string features, cpu;
};

Session::Session(Level level, Contraction contraction) : state_(std::make_unique<State>()) {
  initialise_once();
  auto machine = expect(llvm::orc::JITTargetMachineBuilder::detectHost(), "no JIT for this machine");
  machine.setCodeGenOptLevel(level == Level::quick      ? llvm::CodeGenOptLevel::None
                             : level == Level::moderate ? llvm::CodeGenOptLevel::Less
                                                        : llvm::CodeGenOptLevel::Default);
  machine.getOptions().AllowFPOpFusion =
      contraction == Contraction::anywhere ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Standard;
  if (vector_bytes() < 64) machine.addFeatures({"-avx512f", "-avx512dq", "-avx512vl", "-avx512bw"});
  if (vector_bytes() < 32) machine.addFeatures({"-avx2", "-fma", "-avx"});
  if (vector_bytes() == 64) machine.addFeatures({"-prefer-256-bit"});
  state_->features = machine.getFeatures().getString();
  state_->cpu = machine.getCPU();
  state_->jit =
      expect(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine)).create(), "JIT");
  auto& library = state_->jit->getMainJITDylib();
  const char prefix = state_->jit->getDataLayout().getGlobalPrefix();
  library.addGenerator(
      expect(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix), "process symbols"));
  // Vector functions of the C library; programs that use none need it not.
  if (auto vectors = llvm::orc::DynamicLibrarySearchGenerator::Load("libmvec.so.1", prefix))
    library.addGenerator(std::move(*vectors));
  else llvm::consumeError(vectors.takeError());
}

Session::~Session() = default;

llvm::LLVMContext& Session::context() { return *state_->context.getContext(); }

std::unique_ptr<llvm::Module> Session::new_module(const std::string& name) {
  auto module = std::make_unique<llvm::Module>(name, context());
  module->setDataLayout(state_->jit->getDataLayout());
  module->setTargetTriple(state_->jit->getTargetTriple().str());
  return module;
}

void Session::add(std::unique_ptr<llvm::Module> module) {
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", state_->cpu);
    function.addFnAttr("target-features", state_->features);
  }
#ifndef NDEBUG
  require(!llvm::verifyModule(*module), "generated code is malformed");
#endif
  expect(state_->jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), state_->context)),
         "code generation");
}

void* Session::address(const std::string& function) {
  return expect(state_->jit->lookup(function), "code generation").toPtr<void*>();
}

}  // namespace loipe::jit
