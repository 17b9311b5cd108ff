// SPDX-License-Identifier: Apache-2.0
// Law: batches of random programs agree with the interpreter example by example, in all
// layouts, and write nothing but their results.
#include <cstring>
#include <thread>

#include "backends/backend_testing.h"
#include "backends/random_program.h"

namespace loipe {
namespace {

/// Arguments or results of a batch between guards. A stride of 0 is an array of structures;
/// the rows of a structure of arrays have gaps.
class BatchMemory {
 public:
  BatchMemory(std::span<const TensorType> types, const std::vector<bool>& is_shared, std::int64_t batch,
              std::int64_t stride)
      : types_(types.begin(), types.end()), is_shared_(is_shared), batch_(batch), stride_(stride) {
    for (std::size_t k = 0; k < types_.size(); ++k) {
      const std::int64_t n = types_[k].element_count();
      const std::int64_t elements = is_shared_[k]           ? n
                                    : stride == 0 || n == 0 ? n * batch
                                                            : (n - 1) * stride + batch;
      memory_.emplace_back(static_cast<std::size_t>(elements) * size_of(types_[k].dtype));
    }
  }

  void put(std::size_t k, std::int64_t example, const Tensor& tensor) {
    for_each_element(k, example, [&](std::byte* at, std::size_t in_tensor, std::size_t size) {
      std::memcpy(at, tensor.bytes().data() + in_tensor, size);
    });
  }
  Tensor get(std::size_t k, std::int64_t example) {
    Tensor tensor(types_[k]);
    for_each_element(k, example, [&](std::byte* at, std::size_t in_tensor, std::size_t size) {
      std::memcpy(tensor.bytes().data() + in_tensor, at, size);
    });
    return tensor;
  }
  template <class Span>
  std::vector<Span> spans() {
    std::vector<Span> result;
    for (GuardedBytes& bytes : memory_) result.push_back(bytes.inside());
    return result;
  }
  /// Wipes the elements of all examples; what is left must be as it was in the beginning.
  bool is_untouched_elsewhere() {
    const BatchMemory fresh(types_, is_shared_, batch_, stride_);
    for (std::size_t k = 0; k < memory_.size(); ++k)
      for (std::int64_t b = 0; b < batch_; ++b)
        for_each_element(k, b, [](std::byte* at, std::size_t, std::size_t size) {
          std::memset(at, static_cast<int>(GuardedBytes::kFill), size);
        });
    return memory_ == fresh.memory_;
  }
  bool operator==(const BatchMemory& other) const { return memory_ == other.memory_; }

 private:
  template <class F>
  void for_each_element(std::size_t k, std::int64_t example, F&& f) {
    const std::int64_t n = types_[k].element_count();
    const std::size_t size = size_of(types_[k].dtype);
    for (std::int64_t e = 0; e < n; ++e) {
      const std::int64_t place = is_shared_[k] ? e : stride_ == 0 ? example * n + e : e * stride_ + example;
      f(memory_[k].inside().data() + static_cast<std::size_t>(place) * size,
        static_cast<std::size_t>(e) * size, size);
    }
  }

  std::vector<TensorType> types_;
  std::vector<bool> is_shared_;
  std::int64_t batch_, stride_;
  std::vector<GuardedBytes> memory_;
};

/// Whole vectors of all widths, and a rest.
constexpr std::int64_t kBatch = 37, kGap = 3, kDifferent = 5;

/// A random program, arguments of a few different examples, and what they give.
struct Case {
  Program program;
  std::vector<bool> is_shared;
  std::vector<std::vector<Tensor>> arguments, expected;

  Case(std::uint64_t seed, DType dtype) {
    RandomProgram random = random_program(seed, dtype, 12);
    if (seed % 4 != 0) random = without_masks(std::move(random), dtype);
    Rng rng(seed);
    for (std::size_t k = 0; k < random.arguments.size(); ++k) is_shared.push_back(rng.chance(0.25));
    for (std::int64_t example = 0; example < kDifferent; ++example) {
      for (std::size_t k = 0; k < is_shared.size(); ++k)
        for (std::int64_t i = 0; !is_shared[k] && i < random.arguments[k].element_count(); ++i)
          random.arguments[k].set(i, rng.normal());
      arguments.push_back(random.arguments);
      expected.push_back(evaluate(random.program, random.arguments));
    }
    program = std::move(random.program);
  }

  /// Straight-line code has no truth values among its results.
  static RandomProgram without_masks(RandomProgram random, DType dtype) {
    std::vector<Value> outputs;
    for (Value v : random.program.outputs())
      if (random.program.type(v).dtype == dtype) outputs.push_back(v);
    random.program.set_outputs(std::move(outputs));
    return random;
  }
};

/// The results of all examples, one after the other.
std::vector<Tensor> run_batch(const Executable& executable, const Case& c, std::int64_t in_stride,
                              std::int64_t out_stride) {
  BatchMemory in(executable.argument_types(), c.is_shared, kBatch, in_stride);
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::size_t k = 0; k < c.is_shared.size(); ++k)
      in.put(k, b, c.arguments[static_cast<std::size_t>(b % kDifferent)][k]);
  const std::vector<bool> none_shared(executable.output_types().size(), false);
  BatchMemory out(executable.output_types(), none_shared, kBatch, out_stride);
  const BatchMemory before = in;
  const auto layout = [](std::int64_t stride) {
    return stride == 0 ? BatchLayout::array_of_structures : BatchLayout::structure_of_arrays;
  };
  executable.run_batch(kBatch, in.spans<ConstBytes>(), c.is_shared, out.spans<Bytes>(),
                       {layout(in_stride), layout(out_stride), in_stride, out_stride});
  EXPECT_TRUE(in == before) << "arguments were written";
  std::vector<Tensor> results;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::size_t k = 0; k < none_shared.size(); ++k) results.push_back(out.get(k, b));
  EXPECT_TRUE(out.is_untouched_elsewhere()) << "something beside the results was written";
  return results;
}

void expect_batches_agree(const Case& c, const Executable& one, const Executable& two) {
  const std::vector<Tensor> results = run_batch(one, c, 0, 0);
  std::vector<Tensor> expected;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (const Tensor& tensor : c.expected[static_cast<std::size_t>(b % kDifferent)])
      expected.push_back(tensor);
  expect_agreement(results, expected, 1e-12, 1e-4);
  for (std::int64_t in_stride : {std::int64_t{0}, kBatch + kGap})
    for (std::int64_t out_stride : {std::int64_t{0}, kBatch + kGap})
      EXPECT_TRUE(run_batch(two, c, in_stride, out_stride) == results)
          << "strides " << in_stride << " and " << out_stride << " give other bits";
}

class Batches : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Simd, Batches, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

std::int64_t elements_of(const Program& program) {
  std::int64_t count = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) count += program.type(Value{i}).element_count();
  return count;
}

TEST_P(Batches, RandomProgramsAgreeWithTheReference) {
  int vectorised = 0, looped = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (DType dtype : {DType::f64, DType::f32}) {
      const Case c(seed, dtype);
      // Long straight-line code takes long to compile.
      if (elements_of(c.program) > 1500) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(to_string(dtype)));
      const Backend& jit = find_backend("jit");
      const auto one = jit.compile(c.program, {.threads = 1, .batch = kBatch});
      const auto two = jit.compile(c.program, {.threads = 2, .batch = kBatch});
      ++(one->vectorises_examples() ? vectorised : looped);
      expect_batches_agree(c, *one, *two);
      if (HasFailure()) return;
    }
  EXPECT_GT(vectorised + looped, 50);
  EXPECT_TRUE(vectorised > 20 || vectorised == 0)
      << vectorised << " (none without a compiler of scalar code)";
}

/// Compiled for one example, a batch runs example by example.
TEST_P(Batches, LoopsOverExamplesAgreeWithTheReference) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Case c(seed, seed % 2 ? DType::f64 : DType::f32);
    if (elements_of(c.program) > 20'000) continue;
    const auto one = find_backend("jit").compile(c.program, {.threads = 1}),
               two = find_backend("jit").compile(c.program, {.threads = 2});
    expect_batches_agree(c, *one, *two);
    if (HasFailure()) return;
  }
}

/// Compilers share nothing but what is made once, and the folder of cached code.
TEST(BatchCompilers, ConcurrentCompilesAgree) {
  const Case c(2, DType::f64);
  const auto compile_and_run = [&] {
    return run_batch(*find_backend("jit").compile(c.program, {.threads = 2, .batch = kBatch}), c, 0, kBatch);
  };
  const std::vector<Tensor> expected = compile_and_run();
  std::vector<std::vector<Tensor>> results(4);
  std::vector<std::thread> threads;
  for (std::vector<Tensor>& result : results) threads.emplace_back([&] { result = compile_and_run(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Tensor>& result : results) EXPECT_TRUE(result == expected);
}

/// Sizes beyond all numbers are refused, not wrapped around.
TEST(BatchSizes, HugeBatchesAreRefused) {
  Builder b;
  const Program program = b.finish({b.emit("neg", {b.argument("x", {DType::f64, {8}})})});
  constexpr std::int64_t kHuge = std::int64_t{1} << 61;
  for (const Backend* backend : all_backends()) {
    const auto executable = backend->compile(program, {.batch = 4});
    const std::vector<bool> none_shared{false};
    const std::vector<ConstBytes> in(1);
    const std::vector<Bytes> out(1);
    EXPECT_THROW(executable->run_batch(kHuge, in, none_shared, out), UserError);
    for (const std::int64_t stride : {std::int64_t{0}, kHuge})
      EXPECT_THROW(executable->run_batch(
                       kHuge, in, none_shared, out,
                       {BatchLayout::structure_of_arrays, BatchLayout::structure_of_arrays, stride, stride}),
                   UserError);
    EXPECT_NO_THROW(executable->run_batch(0, in, none_shared, out));
  }
}

/// Small results get constants tile by tile, large ones row by row.
TEST(BatchConstants, AreWrittenForEveryExample) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {2}});
  const Value fixed = b.constant(Tensor::of<double>({3}, {0, -0.5, 3}));
  const Program program = b.finish({b.emit("concatenate", {fixed, b.emit("mul", {x, x})}, {{"axis", 0}}),
                                    b.scalar(7, DType::f64), b.emit("neg", {x})});
  for (const std::int64_t batch : {1, 8, 37, 50'003})
    for (const BatchLayout layout : {BatchLayout::structure_of_arrays, BatchLayout::array_of_structures}) {
      SCOPED_TRACE(batch);
      const auto executable = find_backend("jit").compile(program, {.threads = 2, .batch = batch});
      const auto examples = static_cast<std::size_t>(batch);
      Tensor arguments(TensorType{DType::f64, {2 * batch}});
      for (std::int64_t i = 0; i < 2 * batch; ++i) arguments.set(i, static_cast<double>(i % 11) - 5);
      std::vector<GuardedBytes> results;
      for (std::size_t elements : {5u, 1u, 2u}) results.emplace_back(8 * elements * examples);
      std::vector<Bytes> spans;
      for (GuardedBytes& bytes : results) spans.push_back(bytes.inside());
      const std::vector<ConstBytes> in{arguments.bytes()};
      executable->run_batch(batch, in, {false}, spans, {.arguments = layout, .results = layout});
      const bool has_rows = layout == BatchLayout::structure_of_arrays;
      const auto element = [&](std::size_t k, std::int64_t n, std::int64_t e, std::int64_t example) {
        double value;
        const std::int64_t place = has_rows ? e * batch + example : example * n + e;
        std::memcpy(&value, spans[k].data() + 8 * place, 8);
        return value;
      };
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < batch; ++i) {
        const double x0 = arguments.at(has_rows ? i : 2 * i),
                     x1 = arguments.at(has_rows ? batch + i : 2 * i + 1);
        const double expected[] = {0, -0.5, 3, x0 * x0, x1 * x1, 7, -x0, -x1};
        for (std::int64_t e = 0; e < 8; ++e)
          wrong += (e < 5    ? element(0, 5, e, i)
                    : e == 5 ? element(1, 1, 0, i)
                             : element(2, 2, e - 6, i)) != expected[e];
      }
      EXPECT_EQ(wrong, 0);
      for (const GuardedBytes& bytes : results) EXPECT_TRUE(bytes.is_intact());
    }
}

}  // namespace
}  // namespace loipe
