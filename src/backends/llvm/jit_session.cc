// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/jit_session.h"

#include <dlfcn.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SHA256.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <cstdlib>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>

#include "backends/code_cache.h"
#include "backends/cpu/simd_level.h"
#include "base/check.h"

#if __has_include(<gnu/libc-version.h>)
#include <gnu/libc-version.h>
#endif

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

}  // namespace

/// The prepared kernels and the code made here have vectors of one width.
int vector_bytes() {
  return static_cast<int>(sizeof(float)) * static_cast<int>(cpu::kernels_of_this_cpu().f32.lanes);
}

struct Session::State {
  Level level;
  Contraction contraction;
  llvm::orc::JITTargetMachineBuilder builder;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::unique_ptr<llvm::LLVMContext> context;

  State(Level chosen, Contraction allowed, llvm::orc::JITTargetMachineBuilder target)
      : level(chosen), contraction(allowed), builder(std::move(target)) {}
  void add_object(std::unique_ptr<llvm::MemoryBuffer> object) {
    expect(jit->addObjectFile(std::move(object)), "code generation");
  }
};

namespace {

llvm::orc::JITTargetMachineBuilder target_of_this_cpu(Level level, Contraction contraction) {
  auto machine = expect(llvm::orc::JITTargetMachineBuilder::detectHost(), "no JIT for this machine");
  machine.setCodeGenOptLevel(level == Level::quick      ? llvm::CodeGenOptLevel::None
                             : level == Level::moderate ? llvm::CodeGenOptLevel::Less
                                                        : llvm::CodeGenOptLevel::Default);
  machine.getOptions().AllowFPOpFusion =
      contraction == Contraction::anywhere ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Standard;
  if (vector_bytes() < 64) machine.addFeatures({"-avx512f", "-avx512dq", "-avx512vl", "-avx512bw"});
  if (vector_bytes() < 32) machine.addFeatures({"-avx2", "-fma", "-avx"});
  if (vector_bytes() == 64) machine.addFeatures({"-prefer-256-bit"});
  // As the linker of the session wants it.
  machine.setRelocationModel(llvm::Reloc::PIC_);
  machine.setCodeModel(llvm::CodeModel::Small);
  return machine;
}

}  // namespace

Session::Session(Level level, Contraction contraction) {
  initialise_once();
  state_ = std::make_unique<State>(level, contraction, target_of_this_cpu(level, contraction));
  state_->machine = expect(state_->builder.createTargetMachine(), "no JIT for this machine");
  // Modules are compiled here, so that the code can be kept; the session only links.
  state_->jit = expect(llvm::orc::LLJITBuilder()
                           .setJITTargetMachineBuilder(state_->builder)
                           .setDataLayout(state_->machine->createDataLayout())
                           .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                           .create(),
                       "JIT");
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

std::string Session::key(std::string_view content) const {
  llvm::SHA256 digest;
  // A length before each part: no two lists of parts give the same bytes.
  const auto add_part = [&](std::string_view part) {
    digest.update(std::to_string(part.size()) + ":");
    digest.update(llvm::StringRef(part.data(), part.size()));
  };
  add_part(LOIPE_VERSION);
  add_part(LOIPE_GENERATOR_DIGEST);
  add_part(LLVM_VERSION_STRING);
#if __has_include(<gnu/libc-version.h>)
  // Which vector functions there are, and so which the code calls.
  add_part(gnu_get_libc_version());
#endif
  add_part(state_->builder.getTargetTriple().str());
  add_part(state_->builder.getCPU());
  add_part(state_->builder.getFeatures().getString());
  add_part(std::to_string(static_cast<int>(state_->level)));
  add_part(std::to_string(static_cast<int>(state_->contraction)));
  add_part(content);
  return llvm::toHex(digest.final(), /*LowerCase=*/true);
}

bool Session::load(const std::string& key) {
  const std::optional<std::string> code = CodeCache().load(key);
  if (!code) return false;
  state_->add_object(llvm::MemoryBuffer::getMemBufferCopy(*code, key));
  return true;
}

llvm::LLVMContext& Session::context() {
  if (!state_->context) state_->context = std::make_unique<llvm::LLVMContext>();
  return *state_->context;
}

std::unique_ptr<llvm::Module> Session::new_module(const std::string& name) {
  auto module = std::make_unique<llvm::Module>(name, context());
  module->setDataLayout(state_->jit->getDataLayout());
  module->setTargetTriple(state_->jit->getTargetTriple().str());
  return module;
}

void Session::add(std::unique_ptr<llvm::Module> module, const std::string& key) {
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", state_->builder.getCPU());
    function.addFnAttr("target-features", state_->builder.getFeatures().getString());
  }
#ifndef NDEBUG
  require(!llvm::verifyModule(*module), "generated code is malformed");
#endif
  std::unique_ptr<llvm::MemoryBuffer> object =
      expect(llvm::orc::SimpleCompiler(*state_->machine)(*module), "code generation");
  if (!key.empty()) CodeCache().store(key, {object->getBufferStart(), object->getBufferSize()});
  state_->add_object(std::move(object));
}

void* Session::address(const std::string& function) {
  return expect(state_->jit->lookup(function), "code generation").toPtr<void*>();
}

}  // namespace loipe::jit
