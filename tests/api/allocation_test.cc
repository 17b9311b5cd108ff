// SPDX-License-Identifier: Apache-2.0
// Runs of compiled code allocate nothing once they are warm. This counts every
// operator new of the process, so it is the only test that replaces it.
#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "driver/task_jacobian.h"

// Sanitizers have their own operators.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOIPE_IS_SANITIZED 1
#elif defined(__has_feature)
#define LOIPE_IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define LOIPE_IS_SANITIZED 0
#endif

namespace {
std::atomic<std::int64_t> allocations{0};
}

#if !LOIPE_IS_SANITIZED
static void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, rounded)) return memory;
  throw std::bad_alloc();
}

// Also what new[] calls.
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace loipe {
namespace {

/// Allocations of a run that has been done before. A pool thread may begin late: its
/// start is not the run's.
template <class Run>
std::int64_t allocations_of_a_warm_run(Run run) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) run();
  const std::int64_t before = allocations;
  for (int repetition = 0; repetition < 5; ++repetition) run();
  return allocations - before;
}

/// Spans of tensors, as arguments or results of a run.
template <class T>
std::vector<std::span<T>> spans(std::vector<Tensor>& tensors) {
  std::vector<std::span<T>> result;
  for (Tensor& tensor : tensors) result.push_back(tensor.elements<std::remove_const_t<T>>());
  return result;
}

TEST(Allocation, CountsWhatIsAllocated) {
#if !LOIPE_IS_SANITIZED
  EXPECT_GE(allocations_of_a_warm_run([] { Tensor tensor(TensorType{DType::f64, {4}}); }), 5);
#endif
}

const auto kScalars = [](auto x, auto y) { return std::tuple(sin(x) * y, x / y, exp(x)); };

TEST(Allocation, ScalarPrograms) {
  const TensorType type{DType::f64, {}};
  for (std::int64_t batch : {1, 8}) {
    const Jacobian J = jacobian(kScalars, {{"x", type}, {"y", type}}, {.batch = batch});
    std::vector<Tensor> in(2, Tensor(type)), out(3, Tensor(type)), jac(6, Tensor(type));
    const auto arguments = spans<const double>(in);
    const auto outputs = spans<double>(out), blocks = spans<double>(jac);
    EXPECT_EQ(allocations_of_a_warm_run([&] { J.run<double>(arguments, outputs, blocks); }), 0) << batch;
  }
}

TEST(Allocation, Batches) {
  constexpr std::int64_t kExamples = 4099;
  const TensorType one{DType::f64, {3}}, all{DType::f64, {kExamples, 3}}, block{DType::f64, {kExamples, 9}};
  for (int threads : {1, 2})
    for (std::int64_t batch : {std::int64_t{1}, kExamples}) {  // example by example, and as vectors
      const Jacobian J =
          jacobian(kScalars, {{"x", one}, {"y", one}}, {.threads = threads, .batch = batch, .shared = {"y"}});
      std::vector<Tensor> in{Tensor(all), Tensor(one)}, out(3, Tensor(all)), jac(6, Tensor(block));
      const auto arguments = spans<const double>(in);
      const auto outputs = spans<double>(out), blocks = spans<double>(jac);
      for (BatchLayout layout : {BatchLayout::array_of_structures, BatchLayout::structure_of_arrays})
        EXPECT_EQ(allocations_of_a_warm_run([&] {
                    J.run_batch<double>(kExamples, arguments, outputs, blocks,
                                        {.arguments = layout, .results = layout});
                  }),
                  0)
            << threads << " " << batch;
    }
}

TEST(Allocation, SparseBatches) {
  constexpr std::int64_t kExamples = 4099;
  const TensorType one{DType::f64, {3}}, all{DType::f64, {kExamples, 3}};
  for (int threads : {1, 2}) {
    const Jacobian J = jacobian(kScalars, {{"x", one}, {"y", one}},
                                {.threads = threads, .batch = kExamples, .format = BlockFormat::coo});
    std::vector<Tensor> in(2, Tensor(all)), out(3, Tensor(all)), jac;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 2; ++k)
        jac.emplace_back(TensorType{DType::f64, {kExamples, J.block_pattern(i, k).entry_count()}});
    const auto arguments = spans<const double>(in);
    const auto outputs = spans<double>(out), blocks = spans<double>(jac);
    for (BatchLayout layout : {BatchLayout::array_of_structures, BatchLayout::structure_of_arrays})
      EXPECT_EQ(allocations_of_a_warm_run([&] {
                  J.run_batch<double>(kExamples, arguments, outputs, blocks,
                                      {.arguments = layout, .results = layout});
                }),
                0)
          << threads;
  }
}

TEST(Allocation, TensorPrograms) {
  for (int threads : {1, 2}) {
    TaskJacobianOptions options;
    options.dtype = DType::f32;
    options.threads = threads;
    const Subject subject({"Encoder", 2, {}});
    options.batch = plan_batch(subject, {}, {});
    const TaskJacobian jacobian(subject, options);
    const Executable& executable = *jacobian.compilation().executable;
    std::vector<Tensor> in(executable.argument_types().begin(), executable.argument_types().end());
    std::vector<Tensor> out(executable.output_types().begin(), executable.output_types().end());
    std::vector<ConstBytes> arguments;
    std::vector<Bytes> outputs;
    for (Tensor& tensor : in) arguments.push_back(tensor.bytes());
    for (Tensor& tensor : out) outputs.push_back(tensor.bytes());
    EXPECT_EQ(allocations_of_a_warm_run([&] { executable.run(arguments, outputs); }), 0) << threads;
  }
}

}  // namespace
}  // namespace loipe
